"""A seeded world: one machine, its clock, its processes, what befalls them, and the model.

Everything follows from the seed: who runs when, what is asked, how the clock moves, which write
kills, which pages a power cut keeps. A fault is an `AssertionError`; the seed plays it again.
"""

import errno
import gc
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from queues.store import Sizes, Store, StoreSettings
from queues.store.consuming import Consuming
from queues.store.control import Word
from queues.store.errors import StoreError
from queues.store.levels import LevelTable
from tests.simulation import consumers, judging, roles
from tests.simulation.history import History
from tests.simulation.machine import SimulatedMachine
from tests.simulation.turns import Process, Turns
from tests.support.clock import ManualClock
from tests.support.wheelworld import bury, new_step

_HOUR_MS = 3_600_000
_ROLES: dict[str, Callable[["World", Process], None]] = {
    "client": roles.client,
    "other client": roles.client,
    "scheduler": roles.scheduler,
    "housekeeper": roles.housekeeper,
    "consumer": consumers.consumer,
    "other consumer": consumers.consumer,
}
#: The timer engines, each for half of the seeds.
ENGINES = ("wheel", "rocksdb")


class World:
    """One seed's world."""

    def __init__(self, seed: int, folder: Path, *, engine: str | None = None) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        chance = self.chance
        self.sync = chance.random() < 0.5
        self.engine = engine or chance.choice(ENGINES)
        self.clock = ManualClock(1_700_000_000_000 + chance.randrange(_HOUR_MS))
        self.turns = Turns(chance, chance.choice((0.0, 0.005, 0.02, 0.1)))
        self.root = folder / "store"
        self.machine = SimulatedMachine(self.root, self.turns, chance)
        self.settings = self._settings()
        self.level_count = self.settings.levels.max_level
        #: The longest delay: a message is placed again about so often before it is due.
        self.delay_ms_max = chance.choice((2, 5)) * (
            self.settings.sizes.timer_window_slots * self.settings.sizes.timer_precision_ms
        )
        self.history = History(
            self.root, sync=self.sync, segment_bytes=self.settings.sizes.segment_bytes
        )
        #: How the group that tries again does so, and whether consuming leaves traces.
        self.rule = consumers.rule_of(self)
        self.traced = chance.random() < 0.3
        self.ids: list[str] = []
        self.asked: list[roles.Asked] = []
        #: What befell the world, and what its processes were refused, for the curious.
        self.tally: Counter[str] = Counter()
        self._leaving: set[str] = set()
        self._timers: list[Any] = []
        #: Whether the control page can be believed: not from a power loss to the next opening.
        self._recovered = True
        #: The highest that the clock ever was.
        self.latest_ms = self.clock.now_ms()
        #: Where the log was flushed to when the power went, until that is compared.
        self._lost_from: int | None = None
        self._mortality = chance.choice((0.0, 0.01, 0.05))
        self._faults = chance.choice((0.0, 0.01, 0.04))

    def _settings(self) -> StoreSettings:
        chance = self.chance
        sizes = Sizes(
            segment_bytes=chance.choice((8_192, 16_384, 65_536)),
            consume_queue_units=chance.choice((20, 100)),
            index_slots=100,
            index_entries=400,
            timer_log_bytes=chance.choice((16 + 52 * 20, 5_200)),
            timer_precision_ms=1_000,
            timer_window_slots=chance.choice((30, 90, 300)),
        )
        return StoreSettings(
            sizes=sizes,
            sync_flush=self.sync,
            levels=LevelTable.parse("1s 5s 1m"),
            retention_ms=chance.choice((2, 72)) * _HOUR_MS,
            min_free_bytes=0,
            delete_hours=tuple(range(24)),
            ballast_bytes=4_096,
        )

    # -- for the roles --------------------------------------------------------------------------

    def open_store(self, process: Process | None) -> Store:
        """Open the store as a process does."""
        disk = self.machine.disk_of(process)
        store = Store.open(self.root, self.settings, clock=self.clock, disk=disk)
        self._recovered = True
        return store

    def make_timer(self, store: Store) -> Any:
        """The step of the timer engine that the seed chose."""
        step = new_step(store, self.engine, store.disk)
        self._timers.append(step)
        return step

    def open_consuming(self, store: Store) -> Consuming:
        """The groups, for one process."""
        return consumers.open_consuming(self, store)

    def save(self, close_or_save: Callable[[], None]) -> None:
        """Put on the device what was acknowledged."""
        consumers.save(self, close_or_save)

    def leaving(self, process: Process) -> bool:
        """Whether a process was asked to end."""
        return process.name in self._leaving

    def note(self, error: Exception) -> None:
        """Take down what a loop was refused, as its real surroundings log it and try again."""
        if isinstance(error, OSError) and error.errno != errno.EIO:
            raise error
        self.tally[type(error).__name__] += 1

    # -- living ---------------------------------------------------------------------------------

    def live(self, steps: int) -> None:
        """So many turns, with what befalls the world between them."""
        for name in _ROLES:
            self._start(name)
        for _ in range(steps):
            self._befall()
            process = self.turns.one()
            if process is not None and process.failure is not None:
                self._look_at(process)
            self._bury()
            self._follow()

    def _start(self, name: str) -> None:
        self._leaving.discard(name)
        self.turns.start(name, lambda process: _ROLES[name](self, process))

    def _look_at(self, process: Process) -> None:
        """A process may end with what the machine refuses it, and with nothing else."""
        failure = process.failure
        assert failure is not None
        if not isinstance(failure, StoreError | OSError):
            raise failure
        self.note(failure)

    def _bury(self) -> None:
        """Free what the dead held, and start others in their place."""
        gone = self.turns.bury()
        if any(process.name == "scheduler" for process in gone):
            self._bury_timers()
        for process in gone:
            for disk in [disk for disk in self.machine.disks if disk.process is process]:
                self.machine.release(disk)
            self._start(process.name)

    def _befall(self) -> None:
        chance = self.chance
        if chance.random() < 0.5:
            self._pass_time()
        if chance.random() < self._mortality:
            self._kill_one()
        if chance.random() < self._faults:
            chance.choice(
                (self._step_clock, self._fill, self._lose_power, self._fail_syncs, self._leave)
            )()
        if self.machine.syncs_fail and chance.random() < 0.1:
            self._restart_after_failed_sync()
        if self.machine.full and chance.random() < 0.1:
            self.machine.full = False

    def _pass_time(self) -> None:
        chance = self.chance
        step_ms = chance.choice((1, 40, 700, 3_000, 3_000, chance.choice((60_000, _HOUR_MS // 2))))
        self.clock.advance(chance.randrange(step_ms + 1))
        self.latest_ms = max(self.latest_ms, self.clock.now_ms())

    def _step_clock(self) -> None:
        self.tally["clock step"] += 1
        step_ms = self.chance.choice((50, 101, 5_000, 90_000, _HOUR_MS // 2))
        if self.chance.random() < 0.5:
            # Farther back than its window the wheel's hand cannot follow, and a restart is late.
            sizes = self.settings.sizes
            window_ms = sizes.timer_window_slots * sizes.timer_precision_ms
            self.clock.step_back(min(step_ms, window_ms // 2))
        else:
            self.clock.step_forward(step_ms)
            self.latest_ms = max(self.latest_ms, self.clock.now_ms())

    def _fill(self) -> None:
        self.tally["disk full"] += 1
        self.machine.full = True

    def _leave(self) -> None:
        if self.turns.processes:
            self._leaving.add(self.chance.choice(self.turns.processes).name)

    def _kill_one(self) -> None:
        """Kill a process where it stands, or at one of its next writes, which may be torn."""
        living = [process for process in self.turns.processes if not process.dead]
        if not living:
            return
        self.tally["killed"] += 1
        process = self.chance.choice(living)
        disks = [disk for disk in self.machine.disks if disk.process is process]
        if disks and self.chance.random() < 0.7:
            fate = disks[-1].fate
            fate.die_at = fate.writes + self.chance.randrange(40)
            fate.torn = self.chance.random()
            return
        for disk in disks:
            disk.fate.dead = True
        process.kill()
        self._bury()

    def _kill_all(self) -> None:
        for process in list(self.turns.processes):
            for disk in [disk for disk in self.machine.disks if disk.process is process]:
                disk.fate.dead = True
            process.kill()
        self._bury_timers()
        for disk in list(self.machine.disks):
            self.machine.release(disk)

    def _bury_timers(self) -> None:
        """Let go of the database that a dead holder had open."""
        for step in self._timers:
            bury(step)
        self._timers.clear()

    def _lose_power(self) -> None:
        """Everybody dies, and the device keeps what was synced and some of the rest.

        In async mode what came since the last flush may be lost, and nothing else.
        """
        self.tally["power lost"] += 1
        self._follow()
        self._kill_all()
        self._follow()
        if self._recovered:
            judging.judge_answers(self)
            self._lost_from = self.word(Word.FLUSHED)
        self.history.groups.end_era(power_lost=True)
        self.machine.power_cut(random.Random(self.chance.random()))
        self._recovered = False
        self._bury()

    def _fail_syncs(self) -> None:
        if self.sync:
            self.tally["syncs fail"] += 1
            self.machine.syncs_fail = True

    def _restart_after_failed_sync(self) -> None:
        """The device answers again; who was refused is started anew."""
        self._follow()
        self._kill_all()
        self._follow()
        self.history.groups.end_era(power_lost=False)
        self.machine.syncs_fail = False
        self._recovered = False
        self._bury()

    def _follow(self) -> None:
        if not self._recovered:
            return
        if self._lost_from is not None:
            self.history.lose(self._lost_from)
            self._lost_from = None
        self.history.follow(self.latest_ms)

    # -- the end --------------------------------------------------------------------------------

    def end(self) -> None:
        """Heal the machine, let everything come that is due, and judge."""
        self._kill_all()
        self.turns.bury()
        self.machine.full = self.machine.syncs_fail = False
        self._follow()
        if self._recovered and self.word(Word.FAILED):
            self.history.groups.end_era(power_lost=False)
        store = self.open_store(None)
        self._follow()
        steps = roles.loops_of(self, store)
        for step in steps:
            step.open()
        consuming = self.open_consuming(store)
        self._run_out(store, steps)
        judging.drain(self, store, consuming, lambda: self._run_out(store, steps))
        judging.judge(self, store)
        judging.judge_groups(self, store, consuming)
        for step in steps:
            step.close()
        consuming.close()
        store.close()
        judging.inspect(self)

    def _run_out(self, store: Store, steps: list[Any]) -> None:
        """Run the loops, and sleep as they say, until nothing waits."""
        for _ in range(20_000):
            times = [self._rest(step) for step in steps]
            self._follow()
            waiting = self.history.waiting()
            if not waiting:
                return
            told_ms = min((time_ms for time_ms in times if time_ms is not None), default=None)
            now_ms = self.clock.now_ms()
            assert told_ms is not None, f"the loops would sleep for ever; {len(waiting)} wait"
            assert told_ms <= max(min(waiting), now_ms + 1_000), "the loops would sleep too long"
            assert min(waiting) > now_ms, f"{min(waiting)} is due at {now_ms} and did not come"
            # Mostly to the next due time, sometimes past it: nothing is to be passed over.
            late_ms = self.chance.choice((0, 0, 700, 5_000, 60_000))
            self.clock.advance_to(max(told_ms, now_ms + 1) + self.chance.randrange(late_ms + 1))
            self.latest_ms = max(self.latest_ms, self.clock.now_ms())
            if self.chance.random() < 0.05:
                store.housekeep(self.clock.now_ms())
        raise AssertionError("the loops never come to an end")

    def _rest(self, step: Any) -> int | None:
        for _ in range(5_000):
            advanced = step.advance(self.clock.now_ms())
            if not advanced.more:
                next_ms: int | None = advanced.next_due_ms
                return next_ms
        raise AssertionError(f"{type(step).__name__} never comes to rest")

    def word(self, word: Word) -> int:
        """A word of the control page as it is; 0 where there is none."""
        path = self.root / "postdate" / "control"
        return memoryview(path.read_bytes()).cast("q")[word] if path.exists() else 0


def play(seed: int, *, steps: int | None = None, engine: str | None = None) -> World:
    """Play one seed; raises `AssertionError` where the store does not keep a promise."""
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 (only faster)
    with tempfile.TemporaryDirectory(prefix=f"postdate-{seed}-", dir=base) as folder:
        world = World(seed, Path(folder), engine=engine)
        try:
            world.live(steps or world.chance.choice((40, 40, 60, 60, 160)))
            world.end()
        finally:
            world._kill_all()
            gc.collect()  # Mappings of the dead hold descriptors until then.
        return world
