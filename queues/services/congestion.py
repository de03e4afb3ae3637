"""Congestion control: a slot of the timer takes only so many messages.

Up to the limit everything is taken; from there on the fuller a slot, the likelier a refusal, and at
twice the limit none is taken. (RocketMQ's own rule refuses nearly all just above the limit and ever
fewer towards twice of it.) Only new sends and moves are asked; what was promised is not.

Refusals are spread evenly rather than drawn by lot: a chance of 0.3 refuses three of ten.
"""

import math
import threading
from collections import Counter

from queues import wires
from queues.codes import Code
from queues.moments import format_moment
from queues.problems import Problem
from queues.store.slotcounts import SlotCounts

#: Named when no slot nearby has room, s.
_RETRY_AFTER_S = 60


def refusal_chance(count: int, limit: int) -> float:
    """How likely a message for a slot with `count` messages is refused."""
    return min(max((count - limit) / limit, 0.0), 1.0)


class _Evenly:
    """Turns chances into refusals, each as near to its chance as can be."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._owed = 0.5

    def refuses(self, chance: float) -> bool:
        """Whether this one is refused."""
        with self._mutex:
            self._owed += chance
            refused = self._owed >= 1.0
            self._owed -= refused
        return refused or chance >= 1.0


_evenly = _Evenly()


class Admission:
    """Lets the messages of one request into their slots."""

    def __init__(self, now_ms: int) -> None:
        wiring = wires.wiring()
        self._rules, self._now_ms = wiring.get_rules(), now_ms
        self._slots: SlotCounts | None = None
        if self._rules.slot_limit is not None:
            self._slots = wiring.get_slots()
        #: Let in by this request and not stored yet.
        self._let_in: Counter[int] = Counter()

    def admit(self, due_ms: int | None, *, but_slot_of: int | None = None) -> None:
        """Raise `slot_congested` for a message whose slot is too full.

        `but_slot_of`: a due time whose slot holds the message already.
        """
        slots, limit = self._slots, self._rules.slot_limit
        if slots is None or limit is None or due_ms is None or due_ms <= self._now_ms:
            return
        slot = slots.slot_of(due_ms)
        if but_slot_of is not None and slots.slot_of(but_slot_of) == slot:
            return
        count = slots.count(slot, self._now_ms, limit=limit) + self._let_in[slot]
        if count >= limit and _evenly.refuses(refusal_chance(count, limit)):
            raise self._congested(slots, slot, due_ms, limit)
        self._let_in[slot] += 1

    def _congested(self, slots: SlotCounts, slot: int, due_ms: int, limit: int) -> Problem:
        first = slots.slot_of(self._now_ms) + 1
        last = slots.slot_of(self._now_ms + self._rules.delay_ms_max)
        before, after = slots.nearest_free(slot, first=first, last=last, limit=limit)
        problem = Problem(Code.SLOT_CONGESTED, extra=_nearest(slots, slot, due_ms, before, after))
        wait_ms = 0 if after is None else (after - slot) * slots.precision_ms
        problem.retry_after_s = max(1, math.ceil(wait_ms / 1000)) if wait_ms else _RETRY_AFTER_S
        if at := problem.extra.get("nearest_free_at"):
            problem.detail = f"Too many messages are due then; the nearest free time is {at}."
        return problem


def _nearest(
    slots: SlotCounts, slot: int, due_ms: int, before: int | None, after: int | None
) -> dict[str, str | int]:
    """The nearest free time, at the same place within its slot."""
    found = [number for number in (after, before) if number is not None]
    if not found:
        return {}
    chosen = min(found, key=lambda number: abs(number - slot))
    nearest_ms = due_ms + (chosen - slot) * slots.precision_ms
    return {"nearest_free_at": format_moment(nearest_ms), "nearest_free_at_ms": nearest_ms}
