"""Kernel locks: freed by death, never broken."""

import errno
import fcntl
import os
import struct
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from queues.store.errors import StoreClosing

#: ``F_OFD_SETLK`` of Linux, which older fcntl modules do not name.
_OFD_SETLK = getattr(fcntl, "F_OFD_SETLK", 37)
#: ``struct flock``: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhxxxxqqixxxx")
#: How long a taker with a time-out looks away: at first, and at the most.
_PAUSE_S, _PAUSE_MAX_S = 0.0002, 0.005


class FileLock:
    """A kernel lock on a file (``flock``); threads of this process queue behind a mutex.

    A taker checks that the path still names the file that it locked: one that was deleted and made
    anew would be locked by two.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mutex = threading.Lock()
        self._descriptor = self._open()

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def acquire(self) -> None:
        """Wait until this thread alone, of all threads of all processes, holds the lock.

        Raises `StoreClosing` for one that was closed.
        """
        self._mutex.acquire()
        if self._descriptor < 0:
            self._mutex.release()
            raise StoreClosing
        try:
            while True:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
                if os.fstat(self._descriptor).st_nlink:
                    return
                os.close(self._descriptor)
                self._descriptor = self._open()
        except BaseException:
            self._mutex.release()
            raise

    def try_acquire(self) -> bool:
        """Take the lock if nobody holds it; False otherwise."""
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._mutex.release()
            return False
        if os.fstat(self._descriptor).st_nlink:
            return True
        os.close(self._descriptor)
        self._descriptor = self._open()
        self._mutex.release()
        return self.try_acquire()

    def acquire_within(self, wait_s: float) -> bool:
        """Take the lock; False when others keep it for so long."""
        # The kernel's lock knows no time-out, and a holder that was stopped would keep everybody.
        if self.try_acquire():
            return True
        pause_s, waited_s, never = _PAUSE_S, 0.0, threading.Event()
        while waited_s < wait_s:
            never.wait(pause_s)
            if self.try_acquire():
                return True
            waited_s += pause_s
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)
        return False

    def release(self) -> None:
        """Let the next one in."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._mutex.release()

    def share(self) -> None:
        """Hold the lock together with other sharers, until `close` (no thread queueing)."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def try_own(self) -> bool:
        """Turn a share (or nothing) into the only hold; False, with a share, if others share."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            return False
        return True

    def close(self) -> None:
        """Give the lock and the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class BrokerLock:
    """RocketMQ's own ``lock`` file, byte 0, held shared: a broker then refuses to start here.

    An open-file-description lock: a plain POSIX lock would fall with any ``close`` of the file, and
    a broker sees no ``flock``.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def try_share(self) -> bool:
        """Hold byte 0 shared; False when a broker holds it."""
        try:
            fcntl.fcntl(self._descriptor, _OFD_SETLK, _FLOCK.pack(fcntl.F_RDLCK, 0, 0, 1, 0))
        except OSError as error:
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                return False
            raise
        return True

    def close(self) -> None:
        """Let go."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
