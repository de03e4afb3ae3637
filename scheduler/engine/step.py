"""The timer's step: the five stages in turn, what is due first, over either engine.

| Stage | Module | Does |
|---|---|---|
| scan | `scan`, `express` | reads what is new in the timer topic and still waits |
| enqueue | the engine | keeps it in the order of due times |
| dequeue | the engine | gives it out ahead of its time, slot by slot |
| load | `load` | checks it against the schedule table and lists it |
| hand over | `handover`, `relocate` | gives what is due to the store |

`advance` hands over what is due, takes new messages in (about a millisecond's worth when something
is due soon), reads slots out ahead of their time, loads them, and lets the checkpoint follow. Each
stage stops while the list behind it is full, so memory is bounded whatever arrives.
"""

from typing import TYPE_CHECKING, Any

from queues.store.errors import DiskFull
from scheduler.engine.books import Books
from scheduler.engine.errors import EngineBroken, EngineBusy, StepNotOpened
from scheduler.engine.express import Express
from scheduler.engine.handover import hand_over
from scheduler.engine.limits import (
    BUSY_RETRY_MS,
    ENQUEUE_MS_MAX,
    FULL_RETRY_MS,
    HAND_OVER_MAX,
    LISTED_MAX,
    LOAD_MIN,
    LOAD_PER_MS,
    LOADED_MAX,
    READ_MIN,
    READ_PER_MS,
    READ_UNITS_MAX,
    SCAN_MAX,
    SLACK_MS_MAX,
)
from scheduler.engine.load import load, loadable
from scheduler.engine.protocol import TimerEngine
from scheduler.engine.relocate import relocate_stuck, spill_failing
from scheduler.engine.report import report_of
from scheduler.engine.scan import messages, scan
from scheduler.step import Advanced

if TYPE_CHECKING:
    from queues.store.store import Store


class TimerStep:
    """The `wheel` group's work, whichever engine does it."""

    def __init__(self, store: "Store", engine: TimerEngine) -> None:
        self._store = store
        self.engine = engine
        self._is_open = False
        self._rebuild = self._is_first = False
        self._behind = 0
        self._refused_until_ms = 0
        self._is_full = False
        self._now_ms = 0

    # -- coming and going -----------------------------------------------------------------------

    def open(self) -> None:
        """Take up what is durable; where there is nothing, the first step begins anew."""
        self._is_open = True
        self._refused_until_ms = self._now_ms = self._behind = 0
        self._is_full = False
        self._express = Express()
        self._rebuild = not self.engine.open()
        self._is_first = True

    def close(self) -> None:
        """Make what was done durable and let the files go."""
        if self._is_open:
            self._is_open = False
            self.engine.close(0 if self._rebuild else self._now_ms)

    # -- one step -------------------------------------------------------------------------------

    def advance(self, now_ms: int) -> Advanced:
        """One bounded turn of all stages."""
        if not self._is_open:
            raise StepNotOpened
        self._now_ms = now_ms
        try:
            self._rebuild |= self._is_first and self._was_set_back(now_ms)
            self._is_first = False
            if self._rebuild:
                self.engine.begin_anew(now_ms)
                self._rebuild = False
            return self._turn(self.engine.books, now_ms)
        except EngineBroken:
            self._rebuild = True
            return Advanced(0, more=True, next_due_ms=now_ms)

    def _was_set_back(self, now_ms: int) -> bool:
        """Whether the clock was set back since the last holder.

        What came late for that one lies at its settled hand, ahead of the clock by now, and only
        a rebuild finds it by its due time.
        """
        if self._rebuild:
            return False
        return self.engine.stood_ms - now_ms > self.engine.books.precision_ms

    def _turn(self, books: Books, now_ms: int) -> Advanced:
        engine = self.engine
        books.write_ms = now_ms // books.precision_ms * books.precision_ms
        engine.follow_clock(now_ms)
        moved = hand_over(books, self._store, now_ms, HAND_OVER_MAX)
        self._take_in(books, now_ms)
        ahead = self._express.step(books, self._store, now_ms)
        slack_ms = self._slack_ms(books, now_ms)
        reading = engine.dequeue(now_ms, min(READ_MIN + slack_ms * READ_PER_MS, READ_UNITS_MAX))
        load(books, self._store, now_ms, min(LOAD_MIN + slack_ms * LOAD_PER_MS, LOADED_MAX))
        self._place_again(books, now_ms)
        engine.move_hand(now_ms)
        engine.tend(now_ms, slack_ms)
        next_due_ms = self._next_due_ms(books)
        more = (
            reading
            or ahead
            or loadable(books, now_ms)
            or (now_ms >= self._refused_until_ms and self._can_take_in(books))
            or (next_due_ms is not None and next_due_ms <= now_ms)
        )
        return Advanced(moved, more, next_due_ms)

    def _slack_ms(self, books: Books, now_ms: int) -> int:
        """How long until something is due, at most `SLACK_MS_MAX`."""
        at_ms = books.next_hand_over_ms()
        return SLACK_MS_MAX if at_ms is None else max(0, min(at_ms - now_ms, SLACK_MS_MAX))

    def _take_in(self, books: Books, now_ms: int) -> None:
        """Scan and enqueue, as much as fits before the next message is due."""
        if now_ms < self._refused_until_ms or books.due.size >= LISTED_MAX:
            return
        try:
            self._take_back(books)
        except (DiskFull, EngineBusy) as refusal:
            self._refused(refusal, now_ms)
            return
        count_max = self._enqueue_max(self._slack_ms(books, now_ms))
        stepped_over = 0
        while stepped_over < SCAN_MAX:
            scanned = scan(self._store, books.queue_offset, count_max)
            if len(scanned.waiting):
                try:
                    self.engine.enqueue(scanned.waiting)
                except (DiskFull, EngineBusy) as refusal:
                    self._refused(refusal, now_ms)
                    self._behind = scanned.behind + len(scanned.waiting)
                    return
            self._is_full = False
            stepped_over += max(count_max, scanned.next_offset - books.queue_offset)
            books.queue_offset, self._behind = scanned.next_offset, scanned.behind
            if len(scanned.waiting) or not scanned.behind:
                return

    def _take_back(self, books: Books) -> None:
        """Enqueue again what was late for its slot before the clock was set back."""
        if len(books.displaced):
            waiting = messages(self._store, books.displaced)
            if len(waiting):
                self.engine.enqueue(waiting)
            books.displaced = books.displaced[:0]

    def _enqueue_max(self, slack_ms: int) -> int:
        return self.engine.enqueue_per_ms * min(1 + slack_ms, ENQUEUE_MS_MAX)

    def _refused(self, refusal: DiskFull | EngineBusy, now_ms: int) -> None:
        """Leave the engine alone for a while; what is listed is handed over meanwhile."""
        self._is_full = isinstance(refusal, DiskFull)
        self._refused_until_ms = now_ms + (FULL_RETRY_MS if self._is_full else BUSY_RETRY_MS)

    def _can_take_in(self, books: Books) -> bool:
        """Whether messages wait to be enqueued, or to be placed again, and there is room."""
        return bool(books.rolls) or (self._behind > 0 and books.due.size < LISTED_MAX)

    def _place_again(self, books: Books, now_ms: int) -> None:
        if now_ms < self._refused_until_ms:
            return
        try:
            if books.rolls:
                self.engine.roll(self._enqueue_max(SLACK_MS_MAX))
            relocate_stuck(self.engine, self._store)
            spill_failing(self.engine, self._store, now_ms)
        except (DiskFull, EngineBusy) as refusal:
            self._refused(refusal, now_ms)

    def _next_due_ms(self, books: Books) -> int | None:
        refused_ms = self._refused_until_ms if self._can_take_in(books) else None
        times = (books.next_hand_over_ms(), self.engine.next_read_ms(), refused_ms)
        return min((time for time in times if time is not None), default=None)

    # -- telling --------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """What the console shows; see `report.TimerReport`."""
        if not self._is_open or self._rebuild:
            return {"rebuilding": self._rebuild}
        lateness = self.engine.books.meter.read()
        report = report_of(self._store, self.engine, now_ms=self._now_ms, full=self._is_full)
        return report.as_dict() | {
            "lateness_p50_ms": lateness.p50_ms if lateness else None,
            "lateness_p99_ms": lateness.p99_ms if lateness else None,
        }
