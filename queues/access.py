"""Access is what a caller may do: scopes, and patterns of topics and groups.

A pattern is a name in which `*` stands for any characters: `orders-*`, or `*` for all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from queues.codes import Code
from queues.problems import Problem
from queues.quotas import UNLIMITED, Quotas

#: Names that one key's patterns remember, so that rubbish cannot fill the memory.
_REMEMBERED_MAX = 10_000


class Patterns:
    """Some patterns, asked many times about few names."""

    def __init__(self, patterns: Sequence[str]) -> None:
        #: As they are written.
        self.texts = tuple(patterns)
        #: Every name fits.
        self.takes_all = "*" in patterns
        alternatives = "|".join(
            ".*".join(re.escape(part) for part in pattern.split("*")) for pattern in patterns
        )
        self._expression = re.compile(alternatives if patterns else r"(?!)", re.DOTALL)
        self._remembered: dict[str, bool] = {}

    def allow(self, name: str) -> bool:
        """Whether one of them fits the name."""
        if self.takes_all:
            return True
        allowed = self._remembered.get(name)
        if allowed is None:
            allowed = self._expression.fullmatch(name) is not None
            if len(self._remembered) < _REMEMBERED_MAX:
                self._remembered[name] = allowed
        return allowed


@dataclass(frozen=True, slots=True)
class Caller:
    """The bearer of an API key."""

    #: The key's row, for its last use.
    key_id: int
    #: How audit entries and timelines name it.
    by: str
    scopes: frozenset[str]
    topics: Patterns
    groups: Patterns
    #: What it may use.
    quotas: Quotas = UNLIMITED
    #: From when on nobody bears the key any more, ms since the epoch; None: no such time.
    until_ms: int | None = None

    def require_topic(self, topic: str) -> None:
        """Raise `forbidden` for a topic outside the key's patterns."""
        if not self.topics.allow(topic):
            raise Problem(Code.FORBIDDEN, "The API key's topic patterns leave this topic out.")

    def require_group(self, group: str) -> None:
        """Raise `forbidden` for a group outside the key's patterns."""
        if not self.groups.allow(group):
            raise Problem(Code.FORBIDDEN, "The API key's group patterns leave this group out.")
