"""Folding: from blocks of records to counts of facts.

Hand-overs, sends and redriven messages, of which there are many, are taken by columns; changes,
retries and dead letters are read record by record; a trace is an array already. Of a broker's
records `foreign` says what they tell.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

import numpy as np

from analytics.log.changes import fold_changes
from analytics.log.facts import KINDS, QUARTER_MS, Series, Tally
from analytics.log.foreign import fold_foreign
from analytics.log.leading import (
    Leading,
    is_ours,
    leading_of,
    origins_of,
    real_topics_of,
    topics_of,
)
from analytics.log.names import JOURNAL, LEVELS, RETRY, TIMER, USER, Names
from analytics.log.tracefold import fold_traces
from analytics.log.walk import Block, Bools, Int64s, Seen
from queues.store.names import RETRY_PREFIX

#: Kinds and levels share a number: kind * 1000 + level.
_KINDS: Final = "ILT"
_LEVELS: Final = 1000
_KIND_NUMBERS: Final = np.zeros(256, np.int64)
for _number, _letter in enumerate(_KINDS):
    _KIND_NUMBERS[ord(_letter)] = _number
#: What the vectorised ways take; all other letters are changes.
_MANY: Final = np.zeros(256, np.bool_)
_MANY[[ord(letter) for letter in "NHRX"]] = True
_IMMEDIATE: Final = _KINDS.index("I")
_LEVEL: Final = _KINDS.index("L")
#: Between two names that count as one; no topic's name has it.
_AND: Final = "\x02"


class Fold:
    """Counts what the blocks given to it say."""

    def __init__(
        self, due_at: Callable[[int], int | None], precision_ms: int = 1000,
        *, deliveries_only: bool = False,
    ) -> None:  # fmt: skip
        self.tally = Tally()
        #: Whether only the fact ``delivered`` is asked for, and only what `may_deliver` is given.
        self._deliveries_only = deliveries_only
        self.names = Names()
        #: The due time that the record at a log offset holds, if it is still there.
        self._due_at = due_at
        #: Width of a broker's timer slots.
        self._precision_ms = precision_ms
        self._series: dict[tuple[int, ...], int] = {}

    def add(self, block: Block) -> None:
        """Count a block's records."""
        ours = is_ours(block)
        if not ours.all():
            fold_foreign(block.take(~ours), self.tally, self._precision_ms)
            block = block.take(ours)
        if len(block.ats):
            self._add_ours(block)

    def note_read(self, seen: Seen) -> None:
        """Add a row of the fact ``read``: what was met, as JSON in the reason's place."""
        self.tally.add_one(Series("read", 0, reason=json.dumps(asdict(seen))))

    def _add_ours(self, block: Block) -> None:
        leading, topics = leading_of(block), topics_of(block, self.names)
        purposes = self.names.purposes[topics]
        is_first, handed = leading.letter == ord("N"), leading.letter == ord("H")
        to_topic = purposes == USER
        self._delivered(block, leading, topics, handed & to_topic)
        self._immediate(block, leading, topics, is_first & to_topic)
        if self._deliveries_only:
            return
        self._redelivered(block, leading, topics, handed & (purposes == RETRY))
        self._redriven(block, topics, (leading.letter == ord("X")) & (purposes == RETRY))
        waits = (purposes == LEVELS) | (purposes == TIMER)
        self._sent(block, leading, is_first & waits)
        traces = is_first & (purposes == JOURNAL)
        if traces.any():
            fold_traces(block.take(traces), self.tally)
        changes = ~_MANY[leading.letter]
        # A renewed dead letter is no new death, and needs no reading.
        changes &= (purposes != USER) | (leading.letter == ord("D"))
        if changes.any():
            fold_changes(block.take(changes), self.tally, self._due_at)

    # -- the ways of columns --------------------------------------------------------------------

    def _delivered(self, block: Block, leading: Leading, topics: Int64s, chosen: Bools) -> None:
        if not chosen.any():
            return
        store_ms = block.heads["store_ms"][chosen].astype(np.int64)
        due_ms = leading.due_ms[chosen]
        lateness_ms = store_ms - due_ms
        self._add("delivered", store_ms, topics[chosen], _kinds(leading, chosen), lateness_ms)
        if self._deliveries_only:
            return
        quarters = due_ms // QUARTER_MS
        seconds = (due_ms - quarters * QUARTER_MS) // 1000
        first = int(quarters.min())

        def series_of(group: int) -> int:
            return self._known("slot", first + group)

        self.tally.add_counted(quarters - first, seconds, series_of)

    def _immediate(self, block: Block, leading: Leading, topics: Int64s, chosen: Bools) -> None:
        if chosen.any():
            store_ms = block.heads["store_ms"][chosen].astype(np.int64)
            nothing, kinds = np.zeros_like(store_ms), _kinds(leading, chosen)
            self._add("delivered", store_ms, topics[chosen], kinds, nothing)
            if not self._deliveries_only:
                self._add("sent", store_ms, topics[chosen], kinds, nothing)

    def _sent(self, block: Block, leading: Leading, chosen: Bools) -> None:
        if not chosen.any():
            return
        waiting = block.take(chosen)
        topics = real_topics_of(waiting, self.names)
        known = topics >= 0
        store_ms = waiting.heads["store_ms"].astype(np.int64)
        kinds = _kinds(leading, chosen)
        born_ms = waiting.heads["born_ms"].astype(np.int64)
        # A level counts from the moment it is stored, a time or delay from the request.
        asked_ms = leading.due_ms[chosen] - np.where(kinds // _LEVELS == _LEVEL, store_ms, born_ms)
        self._add("sent", store_ms[known], topics[known], kinds[known], asked_ms[known])

    def _redelivered(self, block: Block, leading: Leading, topics: Int64s, chosen: Bools) -> None:
        if chosen.any():
            store_ms = block.heads["store_ms"][chosen].astype(np.int64)
            pairs, kinds = self._with_origins(block, topics, chosen), _kinds(leading, chosen)
            self._add("redelivered", store_ms, pairs, kinds, store_ms - leading.due_ms[chosen])

    def _redriven(self, block: Block, topics: Int64s, chosen: Bools) -> None:
        if chosen.any():
            store_ms = block.heads["store_ms"][chosen].astype(np.int64)
            nothing = np.zeros_like(store_ms)
            pairs = self._with_origins(block, topics, chosen)
            self._add("redriven", store_ms, pairs, nothing, nothing)

    def _with_origins(self, block: Block, topics: Int64s, chosen: Bools) -> Int64s:
        """Numbers of names that are two: a retry topic, and the topic that it was sent to first."""
        texts, origins = self.names.texts, origins_of(block.take(chosen), self.names)
        pairs = np.stack([topics[chosen], origins])
        met, places = np.unique(pairs, axis=1, return_inverse=True)
        numbers = [
            self.names.number(f"{texts[retry]}{_AND}{texts[origin] if origin >= 0 else ''}")
            for retry, origin in met.T.tolist()
        ]
        return np.array(numbers, np.int64)[places.reshape(-1)]

    def _add(
        self, fact: str, store_ms: Int64s, topics: Int64s, kinds: Int64s, values: Int64s
    ) -> None:
        if not len(store_ms):
            return
        quarters = store_ms // QUARTER_MS
        first, topic_count = int(quarters.min()), len(self.names.texts)
        kind_count = len(_KINDS) * _LEVELS
        groups = ((quarters - first) * topic_count + topics) * kind_count + kinds

        def series_of(group: int) -> int:
            group, kind = divmod(group, kind_count)
            quarter, topic = divmod(group, topic_count)
            return self._known(fact, first + quarter, topic, kind)

        self.tally.add(groups, values, series_of)

    def _known(self, fact: str, quarter: int, topic: int = -1, kind: int = -1) -> int:
        key = (hash(fact), quarter, topic, kind)
        found = self._series.get(key)
        if found is None:
            found = self._series[key] = self.tally.number(self._new(fact, quarter, topic, kind))
        return found

    def _new(self, fact: str, quarter: int, topic: int, kind: int) -> Series:
        if topic < 0:
            return Series(fact, quarter * QUARTER_MS)
        name, group = self.names.texts[topic], ""
        if fact in ("redelivered", "redriven"):
            retry_topic, _, name = name.partition(_AND)
            group = retry_topic.removeprefix(RETRY_PREFIX)
        letter, level = divmod(kind, _LEVELS)
        word = "" if fact == "redriven" else KINDS[_KINDS[letter]]
        return Series(fact, quarter * QUARTER_MS, name, word, level, group)


def _kinds(leading: Leading, chosen: Bools) -> Int64s:
    """Kind and level as one number."""
    numbers: Int64s = _KIND_NUMBERS[leading.kind[chosen]] * _LEVELS
    return numbers + leading.level[chosen]
