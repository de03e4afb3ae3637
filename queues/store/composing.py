"""Composing: many messages at once, from what was asked to one stretch of sealed bytes.

The records of messages that wait in the same place for the same queue differ in a few fields of
fixed width (see `batch`), their body, and their own properties. Each is joined from its form's
constant parts, the body and the own properties; numpy then fills in the fields of all records, one
field at a time. A form is cut out of a specimen that `Encoder.send` encoded, and both ways give the
same bytes.
"""

from collections.abc import Mapping, Sequence, Sized
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from queues.store.batch import (
    DUE_AT,
    HEAD,
    HOST,
    ID_AT,
    ID_BYTES,
    LEADING_BYTES,
    MAGIC_V1,
    Entries,
    Sealed,
    many_hashes,
)
from queues.store.crc import crc32
from queues.store.digits import digits_of
from queues.store.encode import Encoder, own_properties
from queues.store.errors import MessageIllegal
from queues.store.grouping import members_by_number
from queues.store.hashes import tags_code
from queues.store.limits import BODY_BYTES_MAX, DUE_MS_MAX, KEYS_MAX, PROPERTIES_BYTES_MAX
from queues.store.messages import Outgoing
from queues.store.queuetable import Queue
from queues.store.scattered import put_rows

#: The fixed fields of a record, as `HEAD` packs them; the lock fills in offsets and store time.
_HEAD = np.dtype(
    [
        ("size", ">i4"), ("magic", ">u4"), ("body_crc", ">i4"), ("queue_id", ">i4"),
        ("flag", ">i4"), ("offsets", "V16"), ("sys_flag", ">i4"), ("born_ms", ">i8"),
        ("born_host", "V8"), ("store_ms", ">i8"), ("store_host", "V8"), ("reconsume_times", ">i4"),
        ("prepared_offset", ">i8"), ("body_bytes", ">i4"),
    ]
)  # fmt: skip
_BLANK_HEAD = bytes(HEAD.size)
#: Times are filled in with 13 digits; earlier and later ones go the general way.
_DIGITS = 13
_TIME_MS_MIN, _TIME_MS_MAX = 10 ** (_DIGITS - 1), min(DUE_MS_MAX, 10**_DIGITS - 1)
_DELIVER, _OUT = b"TIMER_DELIVER_MS\x01", b"TIMER_OUT_MS\x01"
#: In the place of a level.
_IN_WHEEL, _AT_ONCE = -1, 0

Octets = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]


class Form(NamedTuple):
    """What all messages that wait in one place for one queue have in common."""

    #: Where they wait, or their own queue; its number in the queue table, and in its topic.
    queue: Queue
    queue_number: int
    queue_id: int
    #: A level's delay, ms; else 0.
    delay_ms: int
    topic_number: int
    #: Between body and own properties: topic, length of the properties, leading properties.
    middle: bytes
    #: Behind the own properties, with the room for the CRC.
    tail: bytes
    #: Where the two times of a timed message have their digits in `tail`.
    deliver_at: int
    out_at: int
    key_prefix: str


class Forms(NamedTuple):
    """The fields of `Form`, one column each: the form of every message of a batch."""

    queues: tuple[Queue, ...]
    queue_numbers: tuple[int, ...]
    queue_ids: tuple[int, ...]
    delays_ms: tuple[int, ...]
    topic_numbers: tuple[int, ...]
    middles: tuple[bytes, ...]
    tails: tuple[bytes, ...]
    deliver_at: tuple[int, ...]
    out_at: tuple[int, ...]
    key_prefixes: tuple[str, ...]


class Composer:
    """Makes sealed batches of many new messages of one store."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._precision_ms = encoder, encoder.precision_ms
        self._forms: dict[tuple[str, int, int], Form] = {}

    def compose(self, messages: Sequence[Outgoing], now_ms: int) -> Sealed | None:
        """Encode messages as they are first stored; None for what must go the general way.

        Raises `MessageIllegal` for what cannot be stored.
        """
        columns = Columns(*zip(*messages, strict=True))
        waits = _waits(columns, now_ms)
        forms = self._forms_of(columns, waits)
        dues = _leading_dues(columns, waits)
        ids = "".join(columns.unique_ids).encode()
        if not _usual(columns, dues, ids):
            return None
        owns = _owns(messages, columns)
        pieces = zip(repeat(_BLANK_HEAD), columns.bodies, forms.middles, owns, forms.tails)
        data = bytearray().join(chain.from_iterable(pieces))
        lengths = map(_lengths, (columns.bodies, forms.middles, owns, forms.tails))
        made = _Made(columns, forms, np.array(waits), np.array(dues, np.int64), *lengths)
        return self._filled(data, made, ids)

    def _forms_of(self, columns: "Columns", waits: list[int]) -> Forms:
        places = list(zip(columns.topics, columns.queue_ids, waits, strict=True))
        for place in set(places) - self._forms.keys():
            self._learn(*place)
        return Forms(*zip(*map(self._forms.__getitem__, places), strict=True))

    def _learn(self, topic: str, queue_id: int, waits: int) -> None:
        """Cut a form out of a specimen."""
        specimen = Outgoing(
            topic, queue_id, "0" * ID_BYTES, b"", 0, level=max(waits, 0),
            due_ms=_TIME_MS_MAX if waits == _IN_WHEEL else None,
        )  # fmt: skip
        record, row = self._encoder.send(specimen, 0)
        queue, delay_ms, topic_number = row[2], row[5], row[6]
        own_at = row[1] + LEADING_BYTES
        tail = record[own_at:]
        self._forms[topic, queue_id, waits] = Form(
            queue, queue.index, queue.queue_id, delay_ms, topic_number,
            record[HEAD.size : own_at], tail, tail.find(_DELIVER) + len(_DELIVER),
            tail.find(_OUT) + len(_OUT), f"{queue.topic}#",
        )  # fmt: skip

    def _filled(self, data: bytearray, made: "_Made", ids: bytes) -> Sealed:
        """Fill in the fields, and compute what can be computed before the lock."""
        property_bytes = LEADING_BYTES + made.own + made.tail
        if property_bytes.max() > PROPERTIES_BYTES_MAX:
            raise MessageIllegal(properties_bytes=int(property_bytes.max()))
        property_at = HEAD.size + made.body + made.middle - LEADING_BYTES
        sizes = property_at + property_bytes
        starts = np.cumsum(sizes) - sizes
        put_rows(data, starts, _heads(made, sizes))
        properties = starts + property_at
        put_rows(data, properties - 2, property_bytes.astype(">u2"))
        due_digits = digits_of(made.due_ms, _DIGITS)
        put_rows(data, properties + DUE_AT, due_digits)
        matrix = np.frombuffer(ids, np.uint8).reshape(-1, ID_BYTES)
        put_rows(data, properties + ID_AT, matrix)
        self._fill_timers(data, properties + LEADING_BYTES + made.own, made, due_digits)
        return Sealed(data, starts.tolist(), _entries(made, sizes, property_at, matrix))

    def _fill_timers(self, data: bytearray, tail_at: Int64s, made: "_Made", digits: Octets) -> None:
        timed = np.flatnonzero(made.waits == _IN_WHEEL)
        if not len(timed):
            return
        precision_ms, due_ms, tail_at = self._precision_ms, made.due_ms[timed], tail_at[timed]
        put_rows(data, tail_at + np.array(made.forms.deliver_at)[timed], digits[timed])
        out_ms = (due_ms - 1) // precision_ms * precision_ms
        put_rows(data, tail_at + np.array(made.forms.out_at)[timed], digits_of(out_ms, _DIGITS))


class Columns(NamedTuple):
    """The fields of `Outgoing`, one column each."""

    topics: tuple[str, ...]
    queue_ids: tuple[int, ...]
    unique_ids: tuple[str, ...]
    bodies: tuple[bytes, ...]
    born_ms: tuple[int, ...]
    tags: tuple[str | None, ...]
    keys: tuple[tuple[str, ...], ...]
    properties: tuple[Mapping[str, str], ...]
    levels: tuple[int, ...]
    due_ms: tuple[int | None, ...]
    flags: tuple[int, ...]
    senders: tuple[str | None, ...]


class _Made(NamedTuple):
    """What a batch is made of, one entry a message in each column."""

    columns: Columns
    forms: Forms
    #: The level, or `_IN_WHEEL` or `_AT_ONCE`.
    waits: Int64s
    #: What `PD_DUE` holds before the lock.
    due_ms: Int64s
    #: The lengths of what the record is joined from.
    body: Int64s
    middle: Int64s
    own: Int64s
    tail: Int64s


def _lengths(texts: Sequence[Sized]) -> Int64s:
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _waits(columns: Columns, now_ms: int) -> list[int]:
    """Where each message waits: its level, or `_IN_WHEEL` or `_AT_ONCE`."""
    return [
        level or (_IN_WHEEL if due_ms is not None and due_ms > now_ms else _AT_ONCE)
        for level, due_ms in zip(columns.levels, columns.due_ms, strict=True)
    ]


def _leading_dues(columns: Columns, waits: list[int]) -> list[int]:
    """What `PD_DUE` holds before the lock: a level's due time is decided there."""
    return [
        (due_ms or 0) if wait == _IN_WHEEL else born_ms if wait == _AT_ONCE else 0
        for wait, due_ms, born_ms in zip(waits, columns.due_ms, columns.born_ms, strict=True)
    ]


def _usual(columns: Columns, dues: list[int], ids: bytes) -> bool:
    """Whether all fields have their usual width."""
    if len(ids) != len(dues) * ID_BYTES or set(map(len, columns.unique_ids)) != {ID_BYTES}:
        return False
    earliest_ms = min(filter(None, dues), default=_TIME_MS_MIN)
    return bool(earliest_ms >= _TIME_MS_MIN and max(dues) <= _TIME_MS_MAX)


def _owns(messages: Sequence[Outgoing], columns: Columns) -> list[bytes]:
    """The own properties of each message; those of most are made and looked at together."""
    key_counts = list(map(len, columns.keys))
    if (
        any(columns.properties)
        or max(key_counts) > KEYS_MAX
        or max(map(len, columns.bodies)) > BODY_BYTES_MAX
    ):
        return [own_properties(message) for message in messages]
    heads = {tag: f"TAGS\x01{tag}\x02" if tag else "" for tag in set(columns.tags)}
    tails = {by: f"PD_BY\x01{by}\x02" if by else "" for by in set(columns.senders)}
    texts = [
        f"{heads[tag]}KEYS\x01{' '.join(keys)}\x02{tails[sender]}" if keys
        else heads[tag] + tails[sender]
        for tag, keys, sender in zip(columns.tags, columns.keys, columns.senders, strict=True)
    ]  # fmt: skip
    count = sum(map(bool, chain(columns.tags, key_counts, columns.senders)))
    if _has_separators("".join(texts), count):
        return [own_properties(message) for message in messages]
    return list(map(str.encode, texts))


def _has_separators(text: str, count: int) -> bool:
    """Whether more than the separators of so many properties are in the text."""
    return "\x00" in text or text.count("\x01") != count or text.count("\x02") != count


def _heads(made: _Made, sizes: Int64s) -> npt.NDArray[np.void]:
    columns = made.columns
    heads = np.zeros(len(sizes), _HEAD)
    heads["size"], heads["magic"], heads["body_bytes"] = sizes, MAGIC_V1, made.body
    crcs = np.fromiter(map(crc32, columns.bodies), np.int64, len(sizes))
    heads["body_crc"] = crcs & 0x7FFFFFFF
    heads["queue_id"], heads["flag"] = made.forms.queue_ids, columns.flags
    heads["born_ms"] = columns.born_ms
    heads["born_host"] = heads["store_host"] = np.void(HOST)
    return heads


def _entries(made: _Made, sizes: Int64s, property_at: Int64s, ids: Octets) -> Entries:
    """What dispatching needs to know."""
    columns, forms, count = made.columns, made.forms, len(sizes)
    texts = [
        prefix + key
        for prefix, keys in zip(forms.key_prefixes, columns.keys, strict=True)
        for key in keys
    ]
    owners = np.repeat(np.arange(count), _lengths(columns.keys)).tolist()
    topics = [queue.topic for queue in forms.queues]
    hashes, all_owners = many_hashes(ids, topics, texts, owners)
    nothing = np.zeros(count, np.int64)
    return Entries(
        sizes, property_at, forms.queues, _tag_codes(made), made.due_ms,
        np.array(forms.delays_ms, np.int64), np.array(forms.topic_numbers, np.int64),
        [None] * count, nothing - 1, nothing, hashes, all_owners,
        members=members_by_number(np.array(forms.queue_numbers, np.int64)),
    )  # fmt: skip


def _tag_codes(made: _Made) -> Int64s:
    """What the ConsumeQueue units carry; a level's carry the due time, which the lock decides."""
    tags = made.columns.tags
    if not any(tags):
        return np.zeros(len(tags), np.int64)
    codes = {tag: tags_code(tag) for tag in set(tags)}
    found = np.fromiter(map(codes.__getitem__, tags), np.int64, len(tags))
    found[made.waits > _AT_ONCE] = 0
    return found
