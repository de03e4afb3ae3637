"""The runners of bulk changes: cancel, reschedule, deliver now, restore, and their undoing.

Nothing about how far a run came is kept anywhere but in the log. A message that was cancelled or
restored is no longer meant; one that was moved lies in a new unit, behind the plan's ends. So a run
that is taken up again after a `kill -9` does the rest and nothing twice. What a run changed is
found by who its records say changed them: ``PD_BY`` is ``operation:<id>``.

The append lock is held for at most 100 messages at a time, and as long as a hold took nothing is
asked of it: what is due meanwhile is handed over in between.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from queues import wires
from queues.selectors.matching import STEP_RECORDS, Selection, matches
from queues.services.plans import Target
from queues.store import Store
from queues.store.bulkchanges import BULK_RECORDS_MAX, HeldUnit, Rehold
from queues.store.held import take_apart
from queues.store.names import JOURNAL_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from queues.wires import Progress

#: Bulk operations of one kind that run at once; they share the append lock.
_AT_ONCE = 2
#: Renewals that one record can have had; more is damage.
_RENEWALS_MAX = 1000


class _Pace:
    """Leaves the append lock alone for as long as the last hold took."""

    def __init__(self) -> None:
        self._nothing = threading.Event()
        self._began_s = time.monotonic()

    def begin(self) -> None:
        """A hold begins."""
        self._began_s = time.monotonic()

    def rest(self) -> None:
        """It ended."""
        self._nothing.wait(min(max(time.monotonic() - self._began_s, 0.0005), 0.05))


class Run:
    """One run of one operation: portions of units, changed and counted."""

    def __init__(self, request: dict[str, Any], progress: Progress) -> None:
        self.store = wires.wiring().get_store()
        self.clock = wires.wiring().get_clock()
        self.plan_id: str = request["plan_id"]
        self.by = f"operation:{self.plan_id}"
        self.progress = progress
        self._pace = _Pace()
        #: Messages looked at, and of those changed: by former runs of the operation as well.
        self.looked = self.changed = 0
        #: What someone else settled in the moment.
        self.lost = 0
        # Else the last portion of a former run that was killed would be settled by someone else.
        self.store.bulk.finish()

    def change(
        self, portions: Iterator[list[HeldUnit]], total: int,
        change: Callable[[Sequence[HeldUnit]], set[int]],
    ) -> None:  # fmt: skip
        """Change what comes, until it ends or someone says stop."""
        for portion in portions:
            for first in range(0, len(portion), BULK_RECORDS_MAX):
                if self.progress.aborted:
                    return
                some = portion[first : first + BULK_RECORDS_MAX]
                self._pace.begin()
                lost = len(change(some))
                self._pace.rest()
                self.lost += lost
                self.looked += len(some)
                self.changed += len(some) - lost
                self.progress.report(min(self.looked, total), total)
            if self.progress.aborted:
                return


class BulkRunner:
    """What the four have in common."""

    verb = ""
    at_once = _AT_ONCE
    #: The letter of the records that a run leaves, and the queue that they lie in.
    letter = ""
    journal = False

    @property
    def kind(self) -> str:
        """As the operation is called."""
        return f"messages.{self.verb}"

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Change every message that the plan means and that nobody changed since."""
        run = Run(request, progress)
        run.looked = run.changed = _total(self._own(run, request))
        change = self._change(run, request)
        run.change(matches(Selection.from_json(request["selection"])), request["count"], change)
        return {"planned": request["count"], "changed": run.changed, "lost": run.lost}

    def _change(
        self, run: Run, request: dict[str, Any]
    ) -> Callable[[Sequence[HeldUnit]], set[int]]:
        raise NotImplementedError

    def _own(self, run: Run, request: dict[str, Any]) -> Iterator[list[HeldUnit]]:
        """The records that this operation left, those of a former run as well."""
        topic = JOURNAL_TOPIC if self.journal else TIMER_TOPIC
        start = request["journal_from" if self.journal else "timer_from"]
        return own_records(run.store, topic, start, self.letter, run.by)


def _total(portions: Iterator[list[HeldUnit]]) -> int:
    return sum(map(len, portions))


def own_records(
    store: Store, topic: str, start: int, letter: str, by: str
) -> Iterator[list[HeldUnit]]:
    """The records of a queue from an offset on with this letter and author."""
    mark = f"\x02PD_BY\x01{by}\x02".encode()
    if 0 not in store.queue_ids(topic):
        return  # The journal may have traces, in queue 1, and no change yet.
    queue = store.outlook.queue(topic, 0)
    end = store.outlook.end_of(queue)
    for first in range(start, end, STEP_RECORDS):
        offsets = np.arange(first, min(end, first + STEP_RECORDS))
        places = store.bulk.units_at(queue, offsets)["log_offset"]
        offsets = offsets[store.lookup.letters(places) == ord(letter)]
        loaded = store.bulk.load(queue, offsets, np.zeros(len(offsets), np.int64))
        yield [unit for unit in loaded if mark in unit.record.raw[unit.record.property_at :]]


class CancelRunner(BulkRunner):
    """Cancels."""

    verb, letter, journal = "cancel", "C", True

    def _change(
        self, run: Run, request: dict[str, Any]
    ) -> Callable[[Sequence[HeldUnit]], set[int]]:
        reason = request.get("reason")
        return lambda units: run.store.bulk.cancel(units, by=run.by, reason=reason)

    def undo(
        self, request: dict[str, Any], result: dict[str, Any], progress: Progress
    ) -> dict[str, Any]:
        """Restore what it cancelled, where nobody did yet and the message is still there."""
        del result
        run = Run(request, progress)
        by = f"{run.by}:undo"
        gone = 0

        def cancelled() -> Iterator[list[HeldUnit]]:
            nonlocal gone
            for cancels in self._own(run, request):
                found = [_held_by(run.store, cancel) for cancel in cancels]
                gone += found.count(None)
                yield [unit for unit in found if unit is not None and unit.word]

        start = request["timer_from"]
        run.changed = _total(own_records(run.store, TIMER_TOPIC, start, "S", by))
        run.change(cancelled(), request["count"], _restore(run, by))
        return {"changed": run.changed, "lost": run.lost, "gone": gone}


def _held_by(store: Store, cancel: HeldUnit) -> HeldUnit | None:
    """What a cancel record settled: word 0 if it does not hold any more; None if it is gone."""
    record = store.bulk.record_at(cancel.record.continues)
    if record is None or record.topic not in (SCHEDULE_TOPIC, TIMER_TOPIC):
        return None
    queue = store.outlook.queue(record.topic, record.queue_id)
    words, _ = store.schedule_at(record.topic, record.queue_id, np.array([record.queue_offset]))
    word = cancel.at if int(words[0]) == cancel.at else 0
    return HeldUnit(queue, record.queue_offset, word, cancel.record.continues, record)


def _restore(run: Run, by: str) -> Callable[[Sequence[HeldUnit]], set[int]]:
    def restore(units: Sequence[HeldUnit]) -> set[int]:
        now_ms = run.clock.now_ms()
        messages = []
        for unit in units:
            held = take_apart(unit.record.raw)
            due_ms = max(held.due_ms, now_ms)
            messages.append(Rehold(unit, held, due_ms, held.version, held.kind))
        return run.store.bulk.hold_again(messages, b"S", by=by, counter="restored")

    return restore


class RestoreRunner(BulkRunner):
    """Restores cancelled messages."""

    verb, letter = "restore", "S"

    def _change(
        self, run: Run, request: dict[str, Any]
    ) -> Callable[[Sequence[HeldUnit]], set[int]]:
        del request
        return _restore(run, run.by)

    def undo(
        self, request: dict[str, Any], result: dict[str, Any], progress: Progress
    ) -> dict[str, Any]:
        """Cancel again what it restored and what still waits."""
        del result
        run = Run(request, progress)
        by = f"{run.by}:undo"
        start = request["journal_from"]
        run.changed = _total(own_records(run.store, JOURNAL_TOPIC, start, "C", by))
        run.change(
            _still_waiting(run.store, self._own(run, request)), request["count"],
            lambda units: run.store.bulk.cancel(units, by=by, reason="the restore was undone"),
        )  # fmt: skip
        return {"changed": run.changed, "lost": run.lost}


def _still_waiting(store: Store, own: Iterator[list[HeldUnit]]) -> Iterator[list[HeldUnit]]:
    """The units in which these messages wait now; renewals led on, everything else ended it."""
    for units in own:
        found = [_where_now(store, unit) for unit in units]
        yield [unit for unit in found if unit is not None]


def _where_now(store: Store, unit: HeldUnit) -> HeldUnit | None:
    for _ in range(_RENEWALS_MAX):
        queue = unit.queue
        words, _ = store.schedule_at(queue.topic, queue.queue_id, np.array([unit.unit]))
        word = int(words[0])
        if word == 0:
            return unit
        record = store.bulk.record_at(word) if word > 0 else None
        if record is None or record.letter != "R":
            return None
        queue = store.outlook.queue(record.topic, record.queue_id)
        unit = HeldUnit(queue, record.queue_offset, 0, word, record)
    return None


class _MovingRunner(BulkRunner):
    """Moves to another time."""

    letter = "M"

    def _change(
        self, run: Run, request: dict[str, Any]
    ) -> Callable[[Sequence[HeldUnit]], set[int]]:
        target = Target(**request["to"])
        begun_ms: int = request["begun_ms"]

        def move(units: Sequence[HeldUnit]) -> set[int]:
            now_ms = run.clock.now_ms()
            dues = np.array([unit.record.due_ms for unit in units], np.int64)
            moved = np.maximum(target.moved(dues, begun_ms), now_ms).tolist()
            messages = []
            for unit, due_ms in zip(units, moved, strict=True):
                held = take_apart(unit.record.raw)
                messages.append(Rehold(unit, held, due_ms, held.version + 1, b"T"))
            return run.store.bulk.hold_again(messages, b"M", by=run.by, counter="moved")

        return move


class DeliverNowRunner(_MovingRunner):
    """Moves to now; what was handed over cannot be taken back."""

    verb = "deliver-now"


class RescheduleRunner(_MovingRunner):
    """Moves to another time."""

    verb = "reschedule"

    def undo(
        self, request: dict[str, Any], result: dict[str, Any], progress: Progress
    ) -> dict[str, Any]:
        """Move what it moved back to where it was, if it still waits where it was moved to."""
        del result
        run = Run(request, progress)
        by = f"{run.by}:undo"
        gone = 0

        def move_back(units: Sequence[HeldUnit]) -> set[int]:
            nonlocal gone
            messages, without = [], set[int]()
            for unit in units:
                before = self._before(run, unit)
                if before is None:
                    without.add(unit.unit)
                    continue
                held = take_apart(before.record.raw)
                due_ms = max(held.due_ms, run.clock.now_ms())
                version = unit.record.version + 1
                messages.append(Rehold(unit, held, due_ms, version, held.kind))
            gone += len(without)
            return without | run.store.bulk.hold_again(messages, b"M", by=by, counter="moved")

        start = request["timer_from"]
        run.changed = _total(own_records(run.store, TIMER_TOPIC, start, "M", by))
        own = _still_waiting(run.store, self._own(run, request))
        run.change(own, request["count"], move_back)
        return {"changed": run.changed, "lost": run.lost - gone, "gone": gone}

    def _before(self, run: Run, unit: HeldUnit) -> HeldUnit | None:
        """The holding record from before the move; None if retention took it."""
        record = unit.record
        at = unit.at
        for _ in range(_RENEWALS_MAX):
            letter, at = record.letter, record.continues
            before = run.store.bulk.record_at(at)
            if before is None:
                return None
            if letter == "M":
                queue = run.store.outlook.queue(before.topic, before.queue_id)
                return HeldUnit(queue, before.queue_offset, 0, at, before)
            record = before
        return None


def bulk_runners() -> tuple[wires.OperationRunner, ...]:
    """All of them, for the wiring."""
    return CancelRunner(), RescheduleRunner(), DeliverNowRunner(), RestoreRunner()
