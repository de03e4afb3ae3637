"""Carrying operations out: housekeeping claims what is queued and runs it in threads of its own.

A thread an operation, so that no flush, lease expiry or retention waits for one. Whoever runs an
operation holds a kernel lock on `postdate/leases/operation-<id>.lock`; one that is `running` in its
row and unlocked is nobody's any more, and is taken up again. The lock outlives a change of the
housekeeping lease: the former holder finishes what it began.

The rows are read when the control generation moved (every `begin` raises it), when a thread ended,
and every five seconds; between that a look costs one read of a mapped word.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import close_old_connections, connection

from queues.selectors.operations import unfinished_operations
from queues.services.operations import carry_out, forget_operations, runner_of
from queues.services.sightings import forget_sightings
from queues.store import Store
from queues.store.disk import FileLock
from queues.store.errors import StoreClosing
from scheduler.housekeeping.step import Duty

logger = logging.getLogger(__name__)

#: A word is read this often; what was begun is claimed at the next look.
LOOK_EVERY_MS = 250
#: The rows are read at least this often: for what a dead process left, and what was not told of.
READ_EVERY_MS = 5_000
#: Finished ones are kept for weeks: ten minutes more are nothing.
FORGET_EVERY_MS = 600_000
#: Operations that run at once in one process, whatever their kinds.
RUNNING_MAX = 8
#: How long a stop waits for the threads; each looks at every step whether it should leave.
STOP_WAIT_S = 3.0


class Operations:
    """The operations that this process runs."""

    def __init__(
        self, store: Store, directory: Path, stopped: threading.Event,
        start: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:  # fmt: skip
        self._store, self._directory, self._stopped = store, directory, stopped
        self._start = start or self._start_thread
        self._mutex = threading.Lock()
        #: Operation to its kind.
        self._running: dict[str, str] = {}
        self._threads: list[threading.Thread] = []
        self._generation = -1
        self._read_ms: int | None = None
        self._ended = threading.Event()
        self._finished = 0

    def look(self, now_ms: int) -> dict[str, Any]:
        """Take up what nobody runs, if there may be something."""
        generation = self._store.generation()
        due = self._read_ms is None or not 0 <= now_ms - self._read_ms < READ_EVERY_MS
        if due or generation != self._generation or self._ended.is_set():
            self._ended.clear()
            self._read_ms = now_ms
            self._take_up()
            # Only now: a look that failed is made again.
            self._generation = generation
        return {"running": sorted(self._running.values()), "finished": self._finished}

    def leave(self, _now_ms: int) -> None:
        """When the process stops: give the threads a moment to leave their operations."""
        if self._stopped.is_set():
            for thread in self._threads:
                thread.join(STOP_WAIT_S)

    def _take_up(self) -> None:
        close_old_connections()
        try:
            rows = unfinished_operations()
            with self._mutex:
                kinds = Counter(self._running.values())
            for row in rows:
                if row.id in self._running or kinds.total() >= RUNNING_MAX:
                    continue
                runner = runner_of(row)
                if runner is not None and kinds[row.kind] >= runner.at_once:
                    continue
                if self._begin(row.id, row.kind):
                    kinds[row.kind] += 1
        finally:
            close_old_connections()

    def _begin(self, operation_id: str, kind: str) -> bool:
        disk = self._store.disk
        disk.make_dirs(self._directory)
        lock = disk.lock(self._directory / f"operation-{operation_id}.lock")
        if not lock.try_acquire():
            lock.close()
            return False
        with self._mutex:
            self._running[operation_id] = kind
        self._start(lambda: self._run(operation_id, lock))
        return True

    def _start_thread(self, run: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        # A daemon: a runner that does not listen must not keep a process that was told to stop.
        thread = threading.Thread(target=run, name="operation", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, operation_id: str, lock: FileLock) -> None:
        finished = False
        try:
            finished = carry_out(operation_id, is_stopping=self._stopped.is_set)
        except StoreClosing:
            logger.info("Operation %s is left: the store closes.", operation_id)
        except Exception:
            logger.exception("Operation %s is left; it is taken up again.", operation_id)
        finally:
            self._let_go(operation_id, lock, finished=finished)

    def _let_go(self, operation_id: str, lock: FileLock, *, finished: bool) -> None:
        if finished:
            # Its row is final, so nobody takes this lock again for long.
            self._store.disk.unlink(lock.path)
        lock.release()
        lock.close()
        with self._mutex:
            self._running.pop(operation_id, None)
        if finished:
            self._finished += 1
            self._ended.set()
        if not connection.in_atomic_block:
            connection.close()


def operation_duties(operations: Operations, *, kept_ms: int) -> tuple[Duty, ...]:
    """The duties of housekeeping that carry operations out, and forget what was long ago."""

    def forget(now_ms: int) -> None:
        close_old_connections()
        try:
            forget_operations(now_ms, kept_ms)
            forget_sightings(now_ms)
        finally:
            close_old_connections()

    return (
        Duty("forget rows", FORGET_EVERY_MS, forget),
        Duty("leave operations", READ_EVERY_MS, operations.leave, on_close=True),
        Duty("carry out operations", LOOK_EVERY_MS, operations.look),
    )
