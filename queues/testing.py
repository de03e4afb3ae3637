"""What tests of several rooms need: a wiring over a store of their own, and keys to call with."""

from dataclasses import dataclass, field

from queues.selectors.control import is_changed, is_ordered
from queues.selectors.rules import find_rule
from queues.services.keys import issue_key
from queues.store import Store
from queues.store.allowances import Allowances
from queues.store.clock import Clock
from queues.store.consuming import Consuming
from queues.store.disk import Disk
from queues.store.levels import LevelTable
from queues.store.slotcounts import SlotCounts
from queues.store.waiting import ReadyWatch
from queues.wires import LoopState, OperationRunner, Rules

FORTY_DAYS_MS = 40 * 86_400_000


def loops_of_nobody() -> list[LoopState]:
    """The loops of a platform of which only the web process runs."""
    return [
        LoopState(name, None, None, None, behind_ms=0, stuck=False)
        for name in ("levels", "wheel", "housekeeping")
    ]


@dataclass(slots=True)
class StandingSchedule:
    """Loops that say what a test told them to say."""

    states: list[LoopState] = field(default_factory=loops_of_nobody)

    def loops(self) -> list[LoopState]:
        """What the test set."""
        return self.states


class OwnWiring:
    """A wiring whose parts a test holds in its hand."""

    def __init__(self, store: Store, clock: Clock, *, levels: LevelTable | None = None) -> None:
        self.store, self.clock = store, clock
        self.consuming = Consuming(store, b"a secret of thirty-two bytes, ok")
        self.consuming.rule_of = find_rule
        self.consuming.ordered_of = is_ordered
        self.watch = ReadyWatch(store, store.bell, self.consuming, clock)
        self.watch.is_changed = is_changed
        self.schedule = StandingSchedule()
        self.allowances = Allowances(Disk(), store.root / "postdate")
        self._slots: SlotCounts | None = None
        self.runners: dict[str, OperationRunner] = {}
        self.rules = Rules(
            levels=levels or store.settings.levels,
            clamp_levels=False,
            delay_ms_max=FORTY_DAYS_MS,
            auto_create_topics=True,
            polls_max=8,
        )

    def get_store(self) -> Store:
        """The test's store."""
        return self.store

    def get_clock(self) -> Clock:
        """The test's clock."""
        return self.clock

    def get_consuming(self) -> Consuming:
        """Leases over the test's store."""
        return self.consuming

    def get_allowances(self) -> Allowances:
        """What the test's keys have used."""
        return self.allowances

    def get_watch(self) -> ReadyWatch:
        """What wakes the test's polls."""
        return self.watch

    def get_rules(self) -> Rules:
        """The rules that the test set."""
        return self.rules

    def get_slots(self) -> SlotCounts:
        """How full the slots of the test's timer are."""
        if self._slots is None:
            self._slots = SlotCounts(self.store, self.rules.delay_ms_max)
        return self._slots

    def get_schedule(self) -> StandingSchedule:
        """The loops that the test set."""
        return self.schedule

    def get_runners(self) -> dict[str, OperationRunner]:
        """The runners that the test registered."""
        return self.runners

    def close(self) -> None:
        """Close what was opened."""
        self.watch.close()
        self.consuming.close()
        self.allowances.close()
        self.store.close()


def issue_secret(
    *, name: str = "test", scopes: tuple[str, ...] = ("send", "consume", "inspect", "manage"),
    topics: tuple[str, ...] = ("*",), groups: tuple[str, ...] = ("*",),
) -> str:  # fmt: skip
    """A key to call with."""
    return issue_key(
        name=name, by="test", scopes=scopes, topic_patterns=topics, group_patterns=groups
    ).secret
