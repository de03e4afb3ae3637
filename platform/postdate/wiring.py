"""The wiring: the only place that chooses implementations.

Everything is made at first use and once a process, so that a command which never touches the store
(`migrate`, `--help`) opens none.
"""

import hashlib
import os
import resource
import socket
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from django.conf import settings
from django.db import close_old_connections

from analytics.services.running import LatenessRunner
from analytics.services.scheduling import LOOK_EVERY_MS, start_due_reports
from postdate.config import Config
from queues.limits import OPERATIONS_KEPT_MS
from queues.problems import Problem
from queues.selectors.control import find_topic, is_changed, is_ordered
from queues.selectors.rules import find_rule
from queues.services.bulkrunners import bulk_runners
from queues.services.purging import purge_runners
from queues.services.redriving import RedriveRunner
from queues.services.spreading import SpreadRunner
from queues.store import Store, StoreSettings
from queues.store.allowances import Allowances
from queues.store.clock import SystemClock
from queues.store.consuming import Consuming
from queues.store.disk import Disk
from queues.store.levels import LevelTable
from queues.store.names import DEAD_LETTER_PREFIX, RETRY_PREFIX, is_system_topic
from queues.store.resizing import check_timer_sizes
from queues.store.settings import Sizes
from queues.store.slotcounts import SlotCounts
from queues.store.waiting import ReadyWatch
from queues.wires import OperationRunner, Rules
from scheduler.clockwatch import ClockStep
from scheduler.groups import Group, Groups, group_names
from scheduler.history import EVERY_MS as HISTORY_EVERY_MS
from scheduler.history import HistoryDuty
from scheduler.housekeeping.duties import store_duties
from scheduler.housekeeping.operations import Operations, operation_duties
from scheduler.housekeeping.step import Duty, HousekeepingStep
from scheduler.levels.offsets import DelayOffsets
from scheduler.levels.step import LevelsStep
from scheduler.rocksdb.step import RocksStep
from scheduler.schedule import LoopTable
from scheduler.step import Step
from scheduler.wake import DoorbellWake, TimedWake
from scheduler.wheel.step import WheelStep

Thing = TypeVar("Thing")

#: RocketMQ's own sizes, where they differ from ours.
_ROCKETMQ_SIZES = {
    "segment_bytes": 1 << 30,
    "index_slots": 5_000_000,
    "index_entries": 20_000_000,
    "timer_log_bytes": 100 << 20,
}


#: Open files that a process may have, where the machine allows it (the usual 1,024 are too few).
OPEN_FILES = 65_536


class _Once(Generic[Thing]):
    """Something that is made when it is first asked for, by one thread."""

    def __init__(self, make: Callable[[], Thing]) -> None:
        self._make = make
        self._mutex = threading.RLock()
        self.made: Thing | None = None

    def get(self) -> Thing:
        """The thing."""
        if self.made is None:
            with self._mutex:
                if self.made is None:
                    self.made = self._make()
        return self.made


def _config() -> Config:
    return settings.POSTDATE


def store_settings(config: Config) -> StoreSettings:
    """How the configuration has the store opened."""
    sizes = Sizes(
        **(_ROCKETMQ_SIZES if config.store_sizes == "rocketmq" else {}),
        timer_precision_ms=config.timer_precision_ms,
        timer_window_slots=max(1, config.timer_window_ms // config.timer_precision_ms),
    )
    return StoreSettings(
        sizes=sizes,
        sync_flush=config.flush == "sync",
        levels=LevelTable.parse(config.delay_levels),
        retention_ms=config.retention_ms,
        dead_letter_retention_ms=config.dead_letter_retention_ms,
        min_free_bytes=config.min_free_bytes,
    )


def _allow_open_files() -> None:
    """Raise the soft limit of open files: ledgers, queues and waiting clients take one each."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _open_store() -> Store:
    _allow_open_files()
    config = _config()
    opened_with = store_settings(config)
    check_timer_sizes(Disk(), config.store_dir, opened_with.sizes)
    store = Store.open(config.store_dir, opened_with)
    store.topic_gate = TopicGate(store)
    return store


class TopicGate:
    """Keeps hand-overs from topics that were deleted; asked for every message."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._generation = -1
        self._open: set[str] = set()

    def __call__(self, topic: str, _queue_id: int) -> str | None:
        """Why a topic takes no hand-over; None when it does."""
        generation = self._store.generation()
        if generation != self._generation:
            self._generation, self._open = generation, set()
        if topic in self._open:
            return None
        reason = self._why_closed(topic)
        if reason is None:
            self._open.add(topic)
        return reason

    def _why_closed(self, topic: str) -> str | None:
        if topic.startswith((RETRY_PREFIX, DEAD_LETTER_PREFIX)) or is_system_topic(topic):
            return None
        try:
            return None if find_topic(topic) else "The topic was deleted."
        except Problem:
            # Without the control plane nobody can tell, and what was promised is delivered.
            close_old_connections()
            return None


def _read_rules() -> Rules:
    config = _config()
    return Rules(
        levels=LevelTable.parse(config.delay_levels),
        clamp_levels=config.clamp_delay_level,
        delay_ms_max=config.timer_max_delay_ms,
        auto_create_topics=config.auto_create_topics,
        polls_max=config.web_threads * 3 // 4,
        timer_engine=config.timer_engine,
        slot_limit=config.timer_slot_limit,
    )


_clock = SystemClock()
_store = _Once(_open_store)
_rules = _Once(_read_rules)
_slots = _Once(lambda: SlotCounts(get_store(), _config().timer_max_delay_ms))
_allowances = _Once(lambda: Allowances(Disk(), get_store().root / "postdate"))


def _open_watch() -> ReadyWatch:
    store = get_store()
    given_back = store.loop_bell("given back")
    watch = ReadyWatch(store, store.bell, get_consuming(), get_clock(), given_back)
    watch.is_changed = is_changed
    return watch


_watch = _Once(_open_watch)
_offsets = _Once(
    lambda: DelayOffsets(get_store(), Disk(), _config().store_dir / "config" / "delayOffset.json")
)


def _open_consuming() -> Consuming:
    consuming = Consuming(get_store(), _receipt_key())
    consuming.leases.bells = (get_store().loop_bell("given back"), get_store().bell)
    consuming.rule_of = find_rule
    consuming.ordered_of = is_ordered
    get_store().keep_leased(consuming.leased_from)
    if _config().trace_consumption:
        consuming.tracer = get_store().traces
    return consuming


_consuming = _Once(_open_consuming)


def _receipt_key() -> bytes:
    """The key that receipts are signed with: not the one that signs sessions."""
    return hashlib.blake2b(settings.SECRET_KEY.encode(), person=b"receipts").digest()[:32]


def get_store() -> Store:
    """The one store of this process."""
    return _store.get()


def get_clock() -> SystemClock:
    """The clock that the store was given."""
    return _clock


def get_consuming() -> Consuming:
    """Leases and acks over the store."""
    return _consuming.get()


def get_allowances() -> Allowances:
    """What the API keys have used of their quotas."""
    return _allowances.get()


def get_watch() -> ReadyWatch:
    """What wakes long polls."""
    return _watch.get()


def get_slots() -> SlotCounts:
    """How full the timer's slots are."""
    return _slots.get()


def get_rules() -> Rules:
    """The configured rules for sends."""
    return _rules.get()


# --- operations


def _make_runners() -> dict[str, OperationRunner]:
    """What carries operations out; a new kind of long work is one more line here."""
    runners: tuple[OperationRunner, ...] = (
        *bulk_runners(), *purge_runners(), SpreadRunner(), LatenessRunner(),
        RedriveRunner(),
    )  # fmt: skip
    return {runner.kind: runner for runner in runners}


_runners = _Once(_make_runners)


def get_runners() -> Mapping[str, OperationRunner]:
    """What carries operations out, by their kind."""
    return _runners.get()


# --- loops


def lease_directory() -> Path:
    """Where the leases and the loops' status pages lie."""
    return _config().store_dir / "postdate" / "leases"


def get_schedule() -> LoopTable:
    """What the loops report."""
    return LoopTable(Disk(), lease_directory(), group_names(_config().level_groups), _clock)


def _make_groups() -> Groups:
    return Groups(
        {name: _group(name) for name in group_names(_config().level_groups)},
        directory=lease_directory(),
        process=f"{os.getpid()}@{socket.gethostname()}",
        clock=_clock,
        disk=Disk(),
    )


def _group(name: str) -> Group:
    kind = name.partition("-")[0]
    makers = {"levels": _make_levels, "wheel": _make_wheel, "housekeeping": _make_housekeeping}
    return Group(
        name=name,
        make_step=partial(makers[kind], name),
        make_wake=TimedWake
        if kind == "housekeeping"
        else lambda _: DoorbellWake(get_store(), kind),
        # Every loop sees a step of the clock; one of them counts it.
        note_clock_step=_count_clock_step if kind == "housekeeping" else lambda _: None,
        pulse=lambda alive: get_store().advance_progress(name, leaving=not alive),
    )


def _count_clock_step(step: ClockStep) -> None:
    get_store().count("clock_forward" if step.step_ms > 0 else "clock_back")


def _make_levels(name: str) -> Step:
    config = _config()
    index = int(name.partition("-")[2] or 1) - 1
    return LevelsStep(
        get_store(),
        level_count=LevelTable.parse(config.delay_levels).max_level,
        offsets=_offsets.get(),
        share=(index, config.level_groups),
    )


def _make_wheel(_name: str) -> Step:
    engines = {"wheel": WheelStep, "rocksdb": RocksStep}
    return engines[_config().timer_engine](get_store())


def _make_housekeeping(_name: str) -> Step:
    duties = store_duties(get_store(), get_consuming(), _offsets.get())
    reports = Duty("start reports", LOOK_EVERY_MS, start_due_reports)
    history = HistoryDuty(get_store(), lease_directory() / "history")
    note = Duty("note the history", HISTORY_EVERY_MS, history)
    # What can be undone within the retention is kept as long.
    kept_ms = max(OPERATIONS_KEPT_MS, _config().retention_ms)
    operations = operation_duties(_operations.get(), kept_ms=kept_ms)
    return HousekeepingStep([*operations, reports, *duties, note])


# They outlive the step: who gave the lease away finishes the operations that it began.
_operations = _Once(lambda: Operations(get_store(), lease_directory(), get_groups().stopped))


_groups = _Once(_make_groups)


def get_groups() -> Groups:
    """The groups that this process may run."""
    return _groups.get()


def stop_groups() -> None:
    """Have the loops of this process end, if there are any; safe in a signal handler."""
    if _groups.made is not None:
        _groups.made.stop()


def stop_waiting() -> None:
    """Let every receive that waits answer now."""
    if _watch.made is not None:
        _watch.made.close()


def close() -> None:
    """Close what was opened."""
    if _watch.made is not None:
        _watch.made.close()
        _watch.made = None
    if _allowances.made is not None:
        _allowances.made.close()
        _allowances.made = None
    if _consuming.made is not None:
        _consuming.made.close()
        _consuming.made = None
    if _store.made is not None:
        _store.made.close()
        _store.made = None
