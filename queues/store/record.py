"""A record of the CommitLog: one message in RocketMQ's format, to the byte (big-endian).

====================  =======  ==========================================================
field                 bytes    note
====================  =======  ==========================================================
TOTALSIZE             4        the whole record
MAGICCODE             4        V1, V2 (topic longer than 127 bytes) or filler
BODYCRC               4        CRC-32 of the body & 0x7FFFFFFF
QUEUEID               4
FLAG                  4        the user's; this store keeps the body's form there
QUEUEOFFSET           8        the unit's number in its ConsumeQueue
PHYSICALOFFSET        8        the record's own place, by which a reader knows it
SYSFLAG               4        compression, transaction state, IPv6 bits
BORNTIMESTAMP         8        the producer's clock, ms
BORNHOST              8 or 20  address and port; 20 for IPv6
STORETIMESTAMP        8        the store's clock, ms, read under the append lock
STOREHOST             8 or 20
RECONSUMETIMES        4
PREPAREDTXOFFSET      8
BODYLENGTH, body      4 + n
TOPICLENGTH, topic    1 + n    2 + n in V2
PROPERTIESLENGTH, p.  2 + n    see ``properties``
====================  =======  ==========================================================

91 bytes and what varies (V1, IPv4). The last property may be a CRC of everything before it, 20
bytes: ``__CRC32#``, 0x01, ten decimal digits of CRC-32 & 0x7FFFFFFF, least significant first, 0x02.
A filler ends a segment: TOTALSIZE is what is left of it, and only its first 8 bytes are written.
"""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from queues.store import properties as names
from queues.store.compression import decompress
from queues.store.crc import crc32
from queues.store.errors import RecordCorrupt
from queues.store.hosts import HOST_BYTES_V4, HOST_BYTES_V6, decode_host
from queues.store.properties import decode_properties

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TOTAL_SIZE_AT: Final = 0
MAGIC_AT: Final = 4
BODY_CRC_AT: Final = 8
QUEUE_ID_AT: Final = 12
FLAG_AT: Final = 16
QUEUE_OFFSET_AT: Final = 20
LOG_OFFSET_AT: Final = 28
SYS_FLAG_AT: Final = 36
BORN_MS_AT: Final = 40
BORN_HOST_AT: Final = 48
#: From here on the places are those of a record with IPv4 hosts.
STORE_MS_AT: Final = 56
STORE_HOST_AT: Final = 64
RECONSUME_AT: Final = 72
PREPARED_AT: Final = 76
BODY_LENGTH_AT: Final = 84
BODY_AT: Final = 88

#: A record's size without body, topic and properties (V1, IPv4).
FIXED_BYTES: Final = 91
#: The smallest rest of a segment: what a filler writes.
FILLER_BYTES: Final = 8

MAGIC_V1: Final = 0xDAA320A7
MAGIC_V2: Final = 0xDAA320AB
MAGIC_FILLER: Final = 0xCBD43194

TOPIC_BYTES_MAX_V1: Final = 127
PROPERTIES_BYTES_MAX: Final = 32_767

CRC_MASK: Final = 0x7FFFFFFF
CRC_PROPERTY_BYTES: Final = 20
CRC_PROPERTY_START: Final = b"__CRC32#\x01"

SYS_FLAG_COMPRESSED: Final = 0x1
SYS_FLAG_TRANSACTION: Final = 0xC
SYS_FLAG_PREPARED: Final = 0x4
SYS_FLAG_COMMIT: Final = 0x8
SYS_FLAG_ROLLBACK: Final = 0xC
SYS_FLAG_BORN_HOST_V6: Final = 0x10
SYS_FLAG_STORE_HOST_V6: Final = 0x20
SYS_FLAG_BATCH: Final = 0x40
SYS_FLAG_INNER_BATCH: Final = 0x80

#: All up to the born host, all between the store host and the body, a filler.
HEAD: Final = struct.Struct(">IIIiiqqiq")
MIDDLE: Final = struct.Struct(">iqi")
SIZE_AND_MAGIC: Final = struct.Struct(">II")
#: Body CRC, own offset, SYSFLAG and body length of a record with IPv4 hosts.
_CHECKED_V4: Final = struct.Struct(">8xI16xqi44xI")
_SYS_FLAG_HOSTS_V6: Final = 0x30

#: What bytes may come in: also a mapping, or an array of bytes.
Buffer: TypeAlias = "ReadableBuffer | npt.NDArray[np.uint8]"


@dataclass(frozen=True, slots=True)
class Record:
    """One message as the log holds it."""

    #: Byte offset in the CommitLog.
    log_offset: int
    #: Bytes in all.
    size: int
    #: MAGIC_V1 or MAGIC_V2.
    magic: int
    #: CRC-32 of the body as stored, & 0x7FFFFFFF.
    body_crc: int
    queue_id: int
    #: The user's; this store keeps the body's form there.
    flag: int
    #: The unit's number in its ConsumeQueue.
    queue_offset: int
    #: Compression, transaction state, IPv6 bits.
    sys_flag: int
    #: The producer's clock, ms.
    born_ms: int
    #: ``address:port``, IPv6 addresses in brackets.
    born_host: str
    #: The store's clock, ms.
    store_ms: int
    store_host: str
    reconsume_times: int
    prepared_offset: int
    #: As stored: maybe compressed.
    body: bytes
    topic: str
    properties: dict[str, str]

    @property
    def unique_id(self) -> str | None:
        """The message's id, the same over all its records."""
        return self.properties.get(names.UNIQ_KEY)

    @property
    def tag(self) -> str | None:
        """The tag that consumers filter by."""
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys by which the message can be looked up, as sent."""
        return tuple(key for key in self.properties.get(names.KEYS, "").split(" ") if key)

    def decoded_body(self) -> bytes:
        """Return the body as it was sent; raise what ``decompress`` raises."""
        if self.sys_flag & SYS_FLAG_COMPRESSED:
            return decompress(self.body, self.sys_flag)
        return self.body


class RecordState(Enum):
    """What lies at a place in the log."""

    WHOLE = "whole"
    FILLER = "filler"
    #: Nothing was written here.
    BLANK = "blank"
    TORN = "torn"


class Checked(NamedTuple):
    """What ``check_record`` found."""

    state: RecordState
    #: Bytes to the next record: 0 for blank, the size as told for torn.
    size: int
    #: Why it is torn.
    reason: str = ""


class _Places(NamedTuple):
    """Where the parts of varying length begin and end, from the record's first byte."""

    store_ms: int
    body: int
    topic: int
    properties: int
    end: int


def check_record(
    buffer: Buffer, position: int, end: int, log_offset: int | None, *, sealed: bool = False
) -> Checked:
    """Look at what lies at ``position``, no further than ``end``, and say whether it is whole.

    Checked are size, magic, all lengths, the body's CRC, the offset that the record tells of itself
    (unless ``log_offset`` is None), NUL in the properties (a hole in an unfinished write that the
    body's CRC does not see), and the property CRC where the record has one; with ``sealed`` it must
    have one, as all records of this store do.
    """
    view = memoryview(cast(bytes, buffer))
    if end - position < FILLER_BYTES:
        return Checked(RecordState.BLANK, 0)
    size, magic = SIZE_AND_MAGIC.unpack_from(view, position)
    if magic == MAGIC_FILLER:
        if FILLER_BYTES <= size <= end - position:
            return Checked(RecordState.FILLER, size)
        return Checked(RecordState.TORN, size, "the filler is longer than what is left")
    if magic not in (MAGIC_V1, MAGIC_V2):
        if size == 0 and magic == 0:
            return Checked(RecordState.BLANK, 0)
        return Checked(RecordState.TORN, size, f"unknown magic 0x{magic:08X}")
    if not FIXED_BYTES <= size <= end - position:
        return Checked(RecordState.TORN, size, "the size does not fit")
    view = view[position : position + size]
    fault = _fault_v4(view, log_offset, sealed) if magic == MAGIC_V1 else None
    if fault is None:
        places = _places(view, magic)
        fault = places if isinstance(places, str) else _fault_of(view, places, log_offset, sealed)
    return Checked(RecordState.TORN, size, fault) if fault else Checked(RecordState.WHOLE, size)


def decode_record(buffer: Buffer, position: int = 0, *, verify: bool = True) -> Record:
    """Return the record at ``position``.

    With ``verify`` it is checked like ``check_record`` does, but for its own offset, which the
    caller knows and compares. Raises ``RecordCorrupt`` (with the offset that the record tells).
    """
    view = memoryview(cast(bytes, buffer))[position:]
    if len(view) < FIXED_BYTES:
        raise RecordCorrupt(path=None, offset=None, reason="fewer bytes than a record has")
    head = HEAD.unpack_from(view)
    size, magic, body_crc, queue_id, flag, queue_offset, log_offset, sys_flag, born_ms = head
    if magic not in (MAGIC_V1, MAGIC_V2) or not FIXED_BYTES <= size <= len(view):
        reason = f"no record: size {size}, magic 0x{magic:08X}"
        raise RecordCorrupt(path=None, offset=log_offset, reason=reason)
    view = view[:size]
    places = _places(view, magic)
    fault = (
        places
        if isinstance(places, str)
        else (verify and _fault_of(view, places, None, sealed=False))
    )
    if fault or isinstance(places, str):
        raise RecordCorrupt(path=None, offset=log_offset, reason=fault)
    (store_ms,) = struct.unpack_from(">q", view, places.store_ms)
    reconsume_times, prepared_offset, body_length = MIDDLE.unpack_from(view, places.body - 16)
    topic_at = places.topic
    return Record(
        log_offset=log_offset,
        size=size,
        magic=magic,
        body_crc=body_crc,
        queue_id=queue_id,
        flag=flag,
        queue_offset=queue_offset,
        sys_flag=sys_flag,
        born_ms=born_ms,
        born_host=decode_host(view[BORN_HOST_AT : places.store_ms]),
        store_ms=store_ms,
        store_host=decode_host(view[places.store_ms + 8 : places.body - 16]),
        reconsume_times=reconsume_times,
        prepared_offset=prepared_offset,
        body=bytes(view[places.body : places.body + body_length]),
        topic=str(view[topic_at : places.properties - 2], "utf-8", "replace"),
        properties=decode_properties(bytes(view[places.properties : places.end])),
    )


def crc_property(crc: int) -> bytes:
    """Return the property that carries ``crc``, the CRC-32 of the record before it."""
    digits = f"{crc & CRC_MASK:010d}"[::-1]
    return CRC_PROPERTY_START + digits.encode("ascii") + b"\x02"


def _places(view: memoryview, magic: int) -> _Places | str:
    """Return where the parts lie, or what is wrong with the lengths."""
    (sys_flag,) = struct.unpack_from(">i", view, SYS_FLAG_AT)
    born_bytes = HOST_BYTES_V6 if sys_flag & SYS_FLAG_BORN_HOST_V6 else HOST_BYTES_V4
    store_bytes = HOST_BYTES_V6 if sys_flag & SYS_FLAG_STORE_HOST_V6 else HOST_BYTES_V4
    store_ms = BORN_HOST_AT + born_bytes
    body = store_ms + 8 + store_bytes + 16
    topic_head = 1 if magic == MAGIC_V1 else 2
    size = len(view)
    if body + topic_head + 2 > size:
        return "the size is too small for the hosts"
    body_length = int.from_bytes(view[body - 4 : body], "big")
    topic = body + body_length + topic_head
    if topic + 2 > size:
        return "the body is longer than the record"
    properties = topic + int.from_bytes(view[topic - topic_head : topic], "big") + 2
    if properties > size:
        return "the topic is longer than the record"
    end = properties + int.from_bytes(view[properties - 2 : properties], "big")
    if end != size:
        return "the lengths of the parts do not add up to the size"
    return _Places(store_ms, body, topic, properties, end)


def _fault_v4(view: memoryview, log_offset: int | None, sealed: bool) -> str | None:
    """Do what ``_places`` and ``_fault_of`` do for nearly every record, in a third of the time.

    Returns None where they have to look: IPv6 hosts, lengths that do not add up, or any fault.
    """
    size = len(view)
    body_crc, told_offset, sys_flag, body_length = _CHECKED_V4.unpack_from(view)
    topic_at = BODY_AT + body_length
    if sys_flag & _SYS_FLAG_HOSTS_V6 or topic_at + 3 > size:
        return None
    properties = topic_at + view[topic_at] + 3
    if properties > size or properties + view[properties - 2] * 256 + view[properties - 1] != size:
        return None
    if (log_offset is not None and told_offset != log_offset) or (
        crc32(view[BODY_AT:topic_at]) & CRC_MASK != body_crc
    ):
        return None
    text = view[properties:].tobytes()
    if b"\0" in text:
        return None
    if text[-CRC_PROPERTY_BYTES:].startswith(CRC_PROPERTY_START):
        crc = crc32(view[:-CRC_PROPERTY_BYTES]) & CRC_MASK
        if text[-CRC_PROPERTY_BYTES:] != crc_property(crc):
            return None
    elif sealed:
        return None
    return ""


def _fault_of(view: memoryview, places: _Places, log_offset: int | None, sealed: bool) -> str:
    """Return what is wrong with a record whose lengths add up; empty if nothing is."""
    told_offset = int.from_bytes(view[LOG_OFFSET_AT : LOG_OFFSET_AT + 8], "big")
    if log_offset is not None and told_offset != log_offset:
        return f"the record says that it lies at {told_offset}"
    body_end = places.body + int.from_bytes(view[places.body - 4 : places.body], "big")
    told_crc = int.from_bytes(view[BODY_CRC_AT : BODY_CRC_AT + 4], "big")
    if crc32(view[places.body : body_end]) & CRC_MASK != told_crc:
        return "the body's CRC differs"
    properties = bytes(view[places.properties : places.end])
    if b"\0" in properties:
        return "NUL in the properties: the write was not finished"
    if properties[-CRC_PROPERTY_BYTES:].startswith(CRC_PROPERTY_START):
        before = places.end - CRC_PROPERTY_BYTES
        if properties[-CRC_PROPERTY_BYTES:] != crc_property(crc32(view[:before])):
            return "the property CRC differs"
    elif sealed:
        return "the property CRC is missing"
    return ""
