"""The loops as other processes see them: leases and status pages, read from outside."""

from collections.abc import Sequence
from pathlib import Path

from queues.store.clock import Clock
from queues.store.disk import Disk
from queues.wires import LoopState
from scheduler.status import LoopStatus, read_status


class LoopTable:
    """Reads the loops of one store."""

    def __init__(self, disk: Disk, directory: Path, names: Sequence[str], clock: Clock) -> None:
        self._disk = disk
        self._directory = directory
        self._names = tuple(names)
        self._clock = clock

    def loops(self) -> list[LoopState]:
        """Every loop with its holder, in the order of the configuration."""
        return [self._loop(name) for name in self._names]

    def statuses(self) -> dict[str, LoopStatus | None]:
        """All that the holders say of their loops; None where nobody alive holds one."""
        now_ms = self._clock.monotonic_ms()
        return {name: read_status(self._disk, self._path(name), now_ms) for name in self._names}

    def _loop(self, name: str) -> LoopState:
        now_ms = self._clock.monotonic_ms()
        fresh = read_status(self._disk, self._path(name), now_ms)
        if fresh is not None:
            return _state(fresh, stuck=fresh.stuck, standby=self._standby(name))
        silent = read_status(self._disk, self._path(name))
        if silent is not None and self._is_held(name):
            return _state(silent, stuck=True)
        return LoopState(name, None, None, None, behind_ms=0, stuck=False)

    def _standby(self, name: str) -> str | None:
        """Who waits for the lease; a standby writes its page once, so its lock is asked."""
        waits = read_status(self._disk, self._path(f"{name}.standby"))
        return waits.holder if waits is not None and self._is_held(f"{name}.standby") else None

    def _is_held(self, name: str) -> bool:
        """Whether a silent holder lives: the kernel knows."""
        lock = self._disk.lock(self._directory / f"{name}.lock")
        try:
            if lock.try_acquire():
                lock.release()
                return False
            return True
        finally:
            lock.close()

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.status"


def _state(status: LoopStatus, *, stuck: bool, standby: str | None = None) -> LoopState:
    return LoopState(
        name=status.group,
        holder=status.holder,
        since_ms=status.since_ms,
        last_step_ms=status.last_step_ms,
        behind_ms=status.behind_ms,
        stuck=stuck,
        detail=status.detail,
        steps_per_second=status.steps_per_second,
        moved_per_second=status.moved_per_second,
        lateness_p50_ms=status.lateness_p50_ms,
        lateness_p99_ms=status.lateness_p99_ms,
        failures=status.failures,
        last_error=status.last_error,
        clock_steps=status.clock_steps,
        clock_step_ms=status.clock_step_ms,
        clock_step_at_ms=status.clock_step_at_ms,
        standby=standby,
    )
