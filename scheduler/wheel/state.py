"""The wheel's state: what the five stages share, in memory and in files.

| Between | Bounded list |
|---|---|
| scan → enqueue | one batch of `Waiting` messages |
| enqueue → dequeue | the wheel and the TimerLog |
| dequeue → load | `runs`: sorted keys of slots, `WAITING_KEYS_MAX` |
| load → hand over | `due`: the due list, `LISTED_MAX` |

Two hands: every slot before `read_ms` was read out to its end; no slot before `settled_ms` holds
anything unsettled. Only `settled_ms` is persisted, so a new holder reads again what was not
settled.
"""

from collections import deque
from dataclasses import dataclass, field

from queues.store.timerunits import Longs
from scheduler.lateness import LatenessMeter
from scheduler.wheel.duelist import DueList
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.keys import offsets_in_slot
from scheduler.wheel.outstanding import Outstanding
from scheduler.wheel.slotreading import SlotReading
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel


@dataclass(slots=True)
class Run:
    """Sorted keys of one slot, given out from the front."""

    #: The slot, ms.
    slot_ms: int
    #: Its keys, ascending.
    keys: Longs
    #: How many were loaded.
    begin: int = 0

    @property
    def next_due_ms(self) -> int:
        """When the first of them is due; the slot's start for a late one."""
        return self.slot_ms + int(offsets_in_slot(self.keys[self.begin]))


@dataclass(slots=True)
class WheelState:
    """One holder's view of the wheel."""

    geometry: WheelGeometry
    wheel: TimerWheel
    log: TimerLog
    #: The oldest slot that may hold something unsettled, ms.
    settled_ms: int
    #: The slot being read, ms.
    read_ms: int
    #: The next queue offset of the timer topic to scan.
    queue_offset: int
    #: The time of the last step, floored to the slot width (RocketMQ's write time), ms.
    write_ms: int = 0
    #: The slot on its way out.
    reading: SlotReading | None = None
    #: Keys read out and not loaded.
    runs: deque[Run] = field(default_factory=deque)
    #: Keys of the last slots of a window, to be placed again.
    rolls: deque[Run] = field(default_factory=deque)
    #: How many keys `runs` and `rolls` hold.
    waiting_keys: int = 0
    #: Loaded messages.
    due: DueList = field(default_factory=DueList)
    #: Messages of `due` that failed before.
    failing: int = 0
    #: How late the latest hand-overs were.
    meter: LatenessMeter = field(default_factory=LatenessMeter)
    #: Read out and not settled, by slot.
    outstanding: Outstanding = field(init=False)

    def __post_init__(self) -> None:
        self.outstanding = Outstanding(self.geometry)

    def move_hand(self, now_ms: int) -> None:
        """Let `settled_ms` follow: not past anything unsettled, the slot being read, or the clock.

        Held at the clock's slot, a message that arrives now always finds its slot ahead of the
        hand.
        """
        oldest_ms = self.outstanding.oldest_ms()
        hand_ms = min(self.read_ms, self.clock_slot_ms(now_ms))
        self.settled_ms = hand_ms if oldest_ms is None else min(oldest_ms, hand_ms)

    def clock_slot_ms(self, now_ms: int) -> int:
        """The clock's slot, or the one next to it that both hands can stand at."""
        lowest_ms = max(self.wheel.oldest_possible_ms, self.read_ms - self.geometry.window_ms)
        return max(self.geometry.slot_of(now_ms), lowest_ms)

    def rewind(self, to_ms: int) -> None:
        """Forget what was read out and begin again at a slot, `settled_ms` if that is older."""
        self.settled_ms = self.read_ms = min(self.settled_ms, to_ms)
        self.reading = None
        self.runs.clear()
        self.rolls.clear()
        self.waiting_keys = self.failing = 0
        self.due = DueList()
        self.outstanding = Outstanding(self.geometry)
        self.wheel.mark_unread_from(self.read_ms)
