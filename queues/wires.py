"""The wires are where services and selectors find what the project chose for them to run on.

`postdate.wiring` is the module that supplies them; the setting `POSTDATE_WIRING` names it, and
`QueuesConfig.ready` plugs it in. Everything is opened at first use, so that a process which never
touches the store (`migrate`, `--help`) opens none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from queues.store import Store
    from queues.store.allowances import Allowances
    from queues.store.clock import Clock
    from queues.store.consuming import Consuming
    from queues.store.levels import LevelTable
    from queues.store.slotcounts import SlotCounts
    from queues.store.waiting import ReadyWatch


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator decided about sends; the same in every process."""

    #: The delays that a message may ask for by number.
    levels: "LevelTable"
    #: A level above the table's is taken as its highest instead of refused, as RocketMQ does.
    clamp_levels: bool
    #: The longest delay or the farthest deliver_at, ms from now.
    delay_ms_max: int
    #: An unknown topic is made by the first send to it.
    auto_create_topics: bool
    #: Which engine keeps timed messages in order: `wheel` or `rocksdb`.
    timer_engine: str = field(default="wheel", kw_only=True)
    #: Messages that a slot of the timer takes without question; None: any number.
    slot_limit: int | None = field(default=None, kw_only=True)
    #: Polls of one process that may wait at once; its other threads stay free for other requests.
    polls_max: int


class Schedule(Protocol):
    """What the scheduler tells of itself (DESIGN section 5); its loops run in other processes."""

    def loops(self) -> list["LoopState"]:
        """Every loop with its holder, in the order of the configuration."""


@dataclass(frozen=True, slots=True)
class LoopState:
    """What is known of one loop from its lease and status files."""

    #: `levels`, `levels-2`, `wheel` or `housekeeping`.
    name: str
    #: Who holds its lease, as `pid@host`; None: nobody.
    holder: str | None
    #: Since when, ms since the epoch; None: nobody.
    since_ms: int | None
    #: When it last finished a step, ms since the epoch; None: never.
    last_step_ms: int | None
    #: How far it is behind what is due, ms.
    behind_ms: int
    #: Its holder fails again and again, or lives and says nothing.
    stuck: bool
    #: What its step reports of itself, as JSON values.
    detail: Mapping[str, Any] = field(default_factory=dict)
    #: Steps, and messages handed over, in the last second.
    steps_per_second: float = 0.0
    moved_per_second: float = 0.0
    #: Lateness of its recent hand-overs, ms; None before the first.
    lateness_p50_ms: int | None = None
    lateness_p99_ms: int | None = None
    #: Steps that failed since the holder took it, and why the last one did.
    failures: int = 0
    last_error: str | None = None
    #: Steps of the wall clock that the holder noticed: how many, how far the last, when.
    clock_steps: int = 0
    clock_step_ms: int | None = None
    clock_step_at_ms: int | None = None
    #: Who takes over when the holder goes; None: nobody stands by.
    standby: str | None = None


class Progress(Protocol):
    """What a runner tells of its operation, and hears of it.

    Both raise `OperationLeft` when this process stops: the runner lets it pass, and whoever takes
    the operation up again calls `run` anew.
    """

    def report(self, done: int, total: int | None = None) -> None:
        """Say how much is done, as often as is convenient; it is written twice a second."""

    @property
    def aborted(self) -> bool:
        """Whether someone asked to stop: the runner then returns what it did so far."""


class OperationRunner(Protocol):
    """Carries operations of one kind out, in a thread of the process that keeps house.

    `run` may be called again for an operation whose process died half-way, so it does nothing
    twice. A `Problem` that it raises is the operation's error. A runner that can take its work
    back also has `undo(request, result, progress)`: see `UndoableRunner`.
    """

    @property
    def kind(self) -> str:
        """A noun and a verb, such as `messages.cancel`."""

    @property
    def at_once(self) -> int:
        """How many operations of the kind run at the same time; the others queue."""

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Carry it out; returns the operation's result, as JSON values."""


@runtime_checkable
class UndoableRunner(OperationRunner, Protocol):
    """A runner whose work can be taken back."""

    def undo(
        self, request: dict[str, Any], result: dict[str, Any], progress: Progress
    ) -> dict[str, Any]:
        """Take back what `run` did, also what it did half-way; returns the undoing's result."""


class Wiring(Protocol):
    """What the project supplies; a module with these functions will do."""

    def get_store(self) -> "Store":
        """The one store of this process."""

    def get_clock(self) -> "Clock":
        """The clock that the store was given."""

    def get_consuming(self) -> "Consuming":
        """Leases and acks over that store."""

    def get_allowances(self) -> "Allowances":
        """What the API keys have used of their quotas."""

    def get_watch(self) -> "ReadyWatch":
        """What wakes long polls."""

    def get_rules(self) -> Rules:
        """The configured rules for sends."""

    def get_slots(self) -> "SlotCounts":
        """How full the timer's slots are."""

    def get_schedule(self) -> Schedule:
        """What the loops report."""

    def get_runners(self) -> Mapping[str, OperationRunner]:
        """What carries operations out, by their kind."""


class _Plug:
    """The socket: which wiring this process uses."""

    wiring: Wiring | None = None


def plug_in(wiring: Wiring | None) -> None:
    """Use this wiring from now on."""
    _Plug.wiring = wiring


def wiring() -> Wiring:
    """The wiring in use."""
    if _Plug.wiring is None:
        raise ImproperlyConfigured("QueuesConfig.ready plugs the wiring in; Django is not set up.")
    return _Plug.wiring
