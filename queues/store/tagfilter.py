"""A tag filter: which messages of a topic a group subscribes to.

``*`` (or nothing) takes all; ``TagA || TagB`` takes those two. A ConsumeQueue unit carries the hash
of the tag, so most others are stepped over without reading them; two tags may share a hash, so what
is left is judged by the tag in its record.

Example: ``TagFilter.parse("TagA || TagB")`` takes tag codes 2598919 and 2598920.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from queues.store.hashes import tags_code
from queues.store.properties import TAGS
from queues.store.record import (
    BODY_AT,
    BODY_LENGTH_AT,
    MAGIC_AT,
    MAGIC_V1,
    SYS_FLAG_AT,
    SYS_FLAG_BORN_HOST_V6,
    SYS_FLAG_STORE_HOST_V6,
    decode_record,
)

_EVERYTHING = "*"
_SEPARATOR = "||"
#: A unit's code below a 32-bit hash is an address in RocketMQ's ConsumeQueueExt and tells no tag.
_HASH_MIN = -(2**31)
_V6 = SYS_FLAG_BORN_HOST_V6 | SYS_FLAG_STORE_HOST_V6
_PAIR_END = b"\x02"


@dataclass(frozen=True, slots=True)
class TagFilter:
    """The tags that are subscribed to; none for all."""

    tags: frozenset[str]
    #: Their hashes, sorted.
    codes: tuple[int, ...]

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(expression: str) -> "TagFilter":
        """The filter that a subscription's expression means."""
        tags = frozenset(part.strip() for part in expression.split(_SEPARATOR)) - {""}
        if _EVERYTHING in tags:
            tags = frozenset()
        return TagFilter(tags, tuple(sorted({tags_code(tag) for tag in tags})))

    @property
    def takes_all(self) -> bool:
        """Whether every message matches."""
        return not self.tags

    def may_match(self, tags_codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which units may be of a message that matches."""
        if self.takes_all:
            return np.ones(len(tags_codes), dtype=np.bool_)
        return np.isin(tags_codes, self.codes) | (tags_codes < _HASH_MIN)

    def matches(self, record: bytes) -> bool:
        """Whether the record's own tag matches."""
        return self.takes_all or tag_of(record) in self.tags


def tag_of(record: bytes) -> str | None:
    """The tag of a record's bytes."""
    return property_of(record, TAGS)


def property_of(record: bytes, name: str) -> str | None:
    """One property of a record's bytes, read in place where it is one of ours."""
    plain = int.from_bytes(record[MAGIC_AT : MAGIC_AT + 4], "big") == MAGIC_V1
    if not plain or int.from_bytes(record[SYS_FLAG_AT : SYS_FLAG_AT + 4], "big") & _V6:
        return decode_record(record, verify=False).properties.get(name)
    topic_at = BODY_AT + int.from_bytes(record[BODY_LENGTH_AT:BODY_AT], "big")
    properties = _PAIR_END + record[topic_at + 1 + record[topic_at] + 2 :]
    _, found, rest = properties.partition(f"\x02{name}\x01".encode())
    return rest.partition(_PAIR_END)[0].decode("utf-8", "replace") if found else None
