"""Matching: which held messages a bulk change means, block by block, without keeping them all.

A bulk change is planned first and carried out later, perhaps twice over by two processes, so what
it means must not change meanwhile. It means the messages that the filter takes and that were held
in a unit below the ends noted in the plan: whatever is sent, moved or restored later lies behind
them. A message that housekeeping renewed meanwhile lies behind them too, and is still meant: its
record says `R`, and leads back to one from before the plan over renewals alone. Whatever else was
done to a message since the plan takes it out of the plan.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from queues import wires
from queues.access import Patterns
from queues.selectors.listing import Filter
from queues.selectors.scheduled import Window, holders, wanted_of
from queues.store.bulkchanges import HeldUnit
from queues.store.hashes import tags_code
from queues.store.names import TIMER_TOPIC
from queues.store.outlook import Found, Wanted
from queues.store.queuetable import Queue
from queues.store.schedule import Int64s

#: Records of one step: what is looked at between two looks for an abort.
STEP_RECORDS = 1000
#: Index entries of one key that are looked at.
_KEY_ENTRIES_MAX = 1_000_000
#: Renewals that one message can have had since the plan; more is damage.
_RENEWALS_MAX = 100


@dataclass(frozen=True, slots=True)
class Selection:
    """What a bulk change means."""

    filter: Filter
    #: Topic patterns of whoever asked.
    patterns: tuple[str, ...]
    #: Where the log ended when it was planned.
    boundary: int
    #: By the holding queue's number, where it ended then.
    ends: Mapping[int, int]

    @property
    def cancelled(self) -> bool:
        """Whether cancelled messages are meant, not those that wait."""
        return self.filter.state == "cancelled"

    def as_json(self) -> dict[str, Any]:
        """The selection as an operation's request keeps it."""
        return {
            "filter": asdict(self.filter),
            "patterns": list(self.patterns),
            "boundary": self.boundary,
            "ends": {str(holder): end for holder, end in self.ends.items()},
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Selection":
        """The inverse."""
        window = Window(**kept["filter"]["window"])
        return cls(
            Filter(**{**kept["filter"], "window": window}),
            tuple(kept["patterns"]),
            kept["boundary"],
            {int(holder): end for holder, end in kept["ends"].items()},
        )


def select(wanted: Filter, patterns: Patterns) -> Selection:
    """The selection of a filter as things are now."""
    store = wires.wiring().get_store()
    # The queues first: a message stored between the two looks is not meant.
    ends = {holder: store.outlook.end_of(queue) for holder, queue in holders(store)}
    return Selection(wanted, patterns.texts, store.visible(), ends)


def blocks(selection: Selection) -> Iterator[tuple[Queue, Found]]:
    """The units that are meant as far as the schedule table knows: not by tag and key."""
    store = wires.wiring().get_store()
    wanted = _wanted(selection)
    if wanted is None:
        return
    window = selection.filter.window
    for holder, queue in holders(store, window.kind, window.level):
        end = selection.ends.get(holder, 0)
        for found in _units(selection, queue, wanted, end):
            if not selection.cancelled:
                yield queue, found
                continue
            # Cancelled before the plan was made, and still.
            letters = store.lookup.letters(found.words)
            at = np.flatnonzero((letters == ord("C")) & (found.words < selection.boundary))
            if len(at):
                yield queue, Found(*(column[at] for column in found))


def _wanted(selection: Selection) -> Wanted | None:
    patterns = Patterns(selection.patterns)
    return wanted_of(selection.filter.window, patterns, settled=selection.cancelled)


def _units(selection: Selection, queue: Queue, wanted: Wanted, end: int) -> Iterator[Found]:
    store = wires.wiring().get_store()
    if selection.filter.key is None:
        yield from store.outlook.units(queue, wanted, stop=end)
        return
    units = store.lookup.units_with_key(selection.filter.key, queue, limit=_KEY_ENTRIES_MAX)
    for unit in units:
        if unit < end:
            yield from store.outlook.units(queue, wanted, start=unit, stop=unit + 1)


def matches(selection: Selection) -> Iterator[list[HeldUnit]]:
    """The messages that are meant, with their records, a bounded number at a time.

    The last portions are those that were renewed since the plan.
    """
    for queue, found in blocks(selection):
        yield from _loaded(selection, queue, found)
    if not selection.cancelled:
        yield from _renewed(selection)


def _loaded(selection: Selection, queue: Queue, found: Found) -> Iterator[list[HeldUnit]]:
    store = wires.wiring().get_store()
    for first in range(0, len(found.offsets), STEP_RECORDS):
        offsets = found.offsets[first : first + STEP_RECORDS]
        words = found.words[first : first + STEP_RECORDS]
        keep = _sifted(selection, queue, offsets)
        loaded = store.bulk.load(queue, offsets[keep], words[keep])
        yield [unit for unit in loaded if _takes(selection.filter, unit)]


def _sifted(selection: Selection, queue: Queue, offsets: Int64s) -> Int64s:
    """Which units may have the tag: those of the timer queue carry its code."""
    tag = selection.filter.tag
    if tag is None or queue.topic != TIMER_TOPIC:
        return np.arange(len(offsets))
    codes = wires.wiring().get_store().bulk.units_at(queue, offsets)["tags_code"]
    return np.flatnonzero(codes == tags_code(tag))


def _takes(wanted: Filter, unit: HeldUnit) -> bool:
    kind, level = wanted.window.kind, wanted.window.level
    return (
        wanted.takes_record(unit.record)
        and (kind is None or unit.record.kind == ("L" if kind == "level" else "T"))
        and level in (None, unit.record.level)
    )


def _renewed(selection: Selection) -> Iterator[list[HeldUnit]]:
    """What housekeeping renewed since the plan, and again while this looked."""
    store = wires.wiring().get_store()
    wanted = _wanted(selection)
    timer = next((queue for holder, queue in holders(store) if holder == 0), None)
    if wanted is None or timer is None:
        return
    start = selection.ends.get(0, 0)
    while start < (end := store.outlook.end_of(timer)):
        for found in store.outlook.units(timer, wanted, start=start, stop=end):
            places = store.bulk.units_at(timer, found.offsets)["log_offset"]
            at = np.flatnonzero(store.lookup.letters(places) == ord("R"))
            some = Found(*(column[at] for column in found))
            for units in _loaded(selection, timer, some):
                yield [unit for unit in units if _is_from_before(selection, unit)]
        start = end


def _is_from_before(selection: Selection, unit: HeldUnit) -> bool:
    """Whether renewals alone lead from a record of before the plan to this one."""
    store = wires.wiring().get_store()
    record = unit.record
    for _ in range(_RENEWALS_MAX):
        if record.letter != "R":
            return False
        if record.continues < selection.boundary:
            return True
        before = store.bulk.record_at(record.continues)
        if before is None:
            return False
        record = before
    return False
