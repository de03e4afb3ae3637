"""The wheel's state: the books of the stages, and the files in which the wheel keeps its units."""

from dataclasses import dataclass, field

from scheduler.engine.books import Books
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.outstanding import Outstanding
from scheduler.wheel.slotreading import SlotReading
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel


@dataclass(slots=True, kw_only=True)
class WheelState(Books):
    """One holder's view of the wheel."""

    precision_ms: int = field(init=False)
    outstanding: Outstanding = field(init=False)
    geometry: WheelGeometry
    wheel: TimerWheel
    log: TimerLog
    #: The slot on its way out.
    reading: SlotReading | None = None

    def __post_init__(self) -> None:
        self.precision_ms = self.geometry.precision_ms
        self.outstanding = Outstanding(self.geometry)

    def move_hand(self, now_ms: int) -> None:
        """Let `settled_ms` follow; see `TimerEngine.move_hand`."""
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
        self.clear_lists()
        self.outstanding = Outstanding(self.geometry)
        self.wheel.mark_unread_from(self.read_ms)
