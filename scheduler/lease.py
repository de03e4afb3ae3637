"""The lease: the right to run one group's loop, held by one thread of one process at a time.

It is a kernel lock on `postdate/leases/<group>.lock`, so a second holder is impossible and the
death of the holder frees it at once. A second lock, `<group>.standby.lock`, belongs to the one
process that waits to take over. Nothing else says who is alive: no process id, no time.

A standby waits inside the kernel, in a thread of its own, and so costs nothing and takes over
within a fraction of a millisecond.
"""

import threading
from pathlib import Path

from queues.store.disk import Disk, FileLock
from scheduler.limits import STANDBY_LOOK_S


class Lease:
    """One process's hand on one group's lease."""

    def __init__(self, disk: Disk, directory: Path, group: str) -> None:
        disk.make_dirs(directory)
        self.group = group
        self._disk = disk
        self._path = directory / f"{group}.lock"
        self._lock = disk.lock(self._path)
        self._standby = disk.lock(directory / f"{group}.standby.lock")

    def try_take(self) -> bool:
        """Take the lease if nobody holds it."""
        return self._lock.try_acquire()

    def try_stand_by(self) -> bool:
        """Become the one standby; False when there is one already."""
        return self._standby.try_acquire()

    def step_back(self) -> None:
        """Stand by no longer, without having waited."""
        self._standby.release()

    def wait(self, stopped: threading.Event) -> bool:
        """As the standby: wait until the lease is ours (True) or `stopped` is set (False)."""
        waiter = _Waiter(self._lock)
        try:
            while not stopped.is_set():
                if waiter.won.wait(STANDBY_LOOK_S):
                    return True
            if waiter.abandon():
                return True
            # The abandoned thread still waits with the old lock, and lets go as soon as it gets it.
            self._lock = self._disk.lock(self._path)
            return False
        finally:
            self._standby.release()

    def has_standby(self) -> bool:
        """Whether another process waits for this lease."""
        if not self._standby.try_acquire():
            return True
        self._standby.release()
        return False

    def give(self) -> None:
        """Let the next one in."""
        self._lock.release()


class _Waiter:
    """A thread that waits in the kernel for a lock; it dies with the process."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock
        self._mutex = threading.Lock()
        self._abandoned = False
        self.won = threading.Event()
        threading.Thread(target=self._run, name=f"standby-{lock.path.stem}", daemon=True).start()

    def _run(self) -> None:
        self._lock.acquire()
        with self._mutex:
            if not self._abandoned:
                self.won.set()
                return
        self._lock.release()
        self._lock.close()

    def abandon(self) -> bool:
        """Wait no longer; True when the lock was won in the meantime and is now ours."""
        with self._mutex:
            self._abandoned = not self.won.is_set()
            return not self._abandoned
