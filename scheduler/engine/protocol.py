"""The protocol of an engine for timed messages; `tests/unit/engine` holds both engines to it.

An engine takes batches of waiting messages in (`enqueue`), gives them out as sorted keys, slot by
slot, ahead of their time (`dequeue`), and makes durable how far it is (`tend`). It decides nothing
about a message: whether it still waits, the schedule table says, and the store hands it over.

What it must keep:

* Whatever was enqueued is given out again by a later holder, unless its slot lies before the
  durable `settled_ms`. Giving a message out twice does no harm; passing it over does.
* `settled_ms` becomes durable only after the log was flushed that settled what lies before it.
* A message whose slot was read already is listed in `books.due` by `enqueue`.
"""

from typing import Any, Protocol

from scheduler.engine.books import Books
from scheduler.engine.scan import Waiting


class TimerEngine(Protocol):
    """What keeps timed messages in order; used by one holder at a time."""

    @property
    def name(self) -> str:
        """What `POSTDATE_TIMER_ENGINE` calls it."""

    @property
    def enqueue_per_ms(self) -> int:
        """Messages that it takes in within about a millisecond."""

    @property
    def stuck_ms(self) -> int:
        """How far a failing message may hold `settled_ms` behind `read_ms`."""

    @property
    def books(self) -> Books:
        """What the stages share."""

    @property
    def durable_ms(self) -> int | None:
        """When the last durable checkpoint was made; None before the first."""

    @property
    def stood_ms(self) -> int:
        """Where the last holder's settled hand stood at its checkpoint, ms; 0 before the first."""

    def open(self) -> bool:
        """Take up what is durable; False when there is nothing, or nothing that can be used.

        What another engine keeps of the same messages is removed: it would fall behind unseen.
        """

    def begin_anew(self, now_ms: int) -> None:
        """Empty what is kept and let scanning begin at the first message that waits."""

    def follow_clock(self, now_ms: int) -> None:
        """Bring the hands back when the clock was set back, so that near slots are read again."""

    def move_hand(self, now_ms: int) -> None:
        """Let `settled_ms` follow: not past anything unsettled, the slot being read, or the clock.

        Held at the clock's slot, a message that arrives now always finds its slot ahead of the
        hand.
        """

    def enqueue(self, waiting: Waiting) -> None:
        """Take messages in; `DiskFull` or `EngineBusy` when it cannot now: then none of them."""

    def write_into(self, waiting: Waiting, slot_ms: int) -> None:
        """Write messages into a slot that is not their own; raises like `enqueue`."""

    def note_written_ahead(self, slot_ms: int) -> None:
        """Messages were written into a slot that is read later."""

    def dequeue(self, now_ms: int, units_max: int) -> bool:
        """Look at up to about so many units of slots that begin soon; whether more can be done."""

    def next_read_ms(self) -> int | None:
        """When the next slot should be read; None when none can be before others are settled."""

    def roll(self, keys_max: int) -> None:
        """Place what lay in the last slot of a window again, nearer to its time."""

    def tend(self, now_ms: int, slack_ms: int) -> None:
        """Make durable how far it is, and clean up, when it is time."""

    def unread(self, now_ms: int) -> tuple[int | None, int]:
        """Messages in slots that should have been read by now (None: not counted), and since."""

    def files(self) -> dict[str, Any]:
        """What its report adds: its files, as JSON values."""

    def close(self, now_ms: int) -> None:
        """Make what was done durable (with a time of 0: leave as it is) and let the files go."""
