"""A holding record of ours taken apart, as bytes, to make another record from it."""

from functools import lru_cache
from typing import NamedTuple

from queues.store.batch import LEADING_BYTES
from queues.store.hashes import tags_code

#: What begins the description of a record's waiting.
HOLDING = b"\x02REAL_TOPIC\x01"


class Held(NamedTuple):
    """The parts of a holding record."""

    body: bytes
    flag: int
    born_ms: int
    reconsume_times: int
    #: The leading properties' values.
    due_ms: int
    kind: bytes
    level: int
    version: int
    unique_id: bytes
    #: TAGS, KEYS, PD_BY and the user's properties, separators included.
    own: bytes
    real_topic: bytes
    real_queue_id: int


def take_apart(raw: bytes) -> Held:
    """Take a holding record apart."""
    body_end = 88 + int.from_bytes(raw[84:88], "big")
    at = body_end + 3 + raw[body_end]
    own_end = raw.rfind(HOLDING, at) + 1
    real_topic, real_queue_id = real_of(raw[own_end + 11 :].split(b"\x02", 2))
    return Held(
        raw[88:body_end],
        int.from_bytes(raw[16:20], "big", signed=True),
        int.from_bytes(raw[40:48], "big"),
        int.from_bytes(raw[72:76], "big"),
        int(raw[at + 7 : at + 20]),
        raw[at + 59 : at + 60],
        int(raw[at + 60 : at + 63]),
        int(raw[at + 75 : at + 81]),
        raw[at + 91 : at + 123],
        raw[at + LEADING_BYTES : own_end],
        real_topic,
        real_queue_id,
    )


def remains(due_ms: int, topic: str, level: int = 0, unique_id: str = "0" * 32) -> Held:
    """What stands for a holding record that is damaged or gone, so that it can be set aside."""
    kind = b"L" if level else b"T"
    return Held(b"", 0, 0, 0, due_ms, kind, level, 1, unique_id.encode(), b"", topic.encode(), 0)


def real_of(properties: list[bytes]) -> tuple[bytes, int]:
    """Topic and queue from the values behind ``REAL_TOPIC``, split at the separators."""
    return properties[0], int(properties[1][9:])


def tag_and_keys(own: bytes) -> tuple[int, tuple[str, ...]]:
    """The tag's code and the keys of a record's own properties."""
    tag = 0
    if own.startswith(b"TAGS\x01"):
        end = own.index(b"\x02")
        tag, own = _tag_code(own[5:end]), own[end + 1 :]
    if own.startswith(b"KEYS\x01"):
        return tag, tuple(own[5 : own.index(b"\x02")].decode().split(" "))
    return tag, ()


@lru_cache(maxsize=4096)
def _tag_code(tag: bytes) -> int:
    return tags_code(tag.decode())


def without_by(own: bytes) -> bytes:
    """The own properties without the trace of who wrote the record before."""
    start = 0 if own.startswith(b"PD_BY\x01") else own.find(b"\x02PD_BY\x01") + 1
    if start == 0 and not own.startswith(b"PD_BY\x01"):
        return own
    return own[:start] + own[own.index(b"\x02", start) + 1 :]
