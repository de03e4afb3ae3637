"""A doorbell: a 4-byte word in shared memory that rings in every process (a Linux futex).

==========  ==========================================================
byte        what
==========  ==========================================================
0 to 3      how often it rang, modulo 2^32
4 to 7      1 when somebody waits (armed), so that ringing costs no
            system call while nobody does
==========  ==========================================================

A waiter arms the bell and then waits *for the count that it saw* to change; the ringer counts first
and looks at the armed word after, so a ring between the two is never missed. Every wait has a
time-out all the same. Two ringers at once may count as one: the count still changes, which is all
that a waiter asks.
"""

import ctypes
import platform
import struct
import time

from queues.store.disk import Mapped

_SYSCALL_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine())
_FUTEX_WAIT, _FUTEX_WAKE, _EVERYBODY = 0, 1, 2**31 - 1
#: How often a machine without a known futex call looks.
_POLL_S = 0.002
_COUNT = struct.Struct("=I")
_ONE = _COUNT.pack(1)
_ZERO = _COUNT.pack(0)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Bell:
    """One doorbell at a byte offset of a mapped file."""

    def __init__(self, mapped: Mapped, offset: int) -> None:
        self._mapped = mapped
        self._offset = offset
        self._address = ctypes.c_void_p(mapped.address(offset))
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall

    def value(self) -> int:
        """How often it rang, modulo 2^32."""
        return int(_COUNT.unpack_from(self._mapped.memory, self._offset)[0])

    def ring(self) -> None:
        """Wake everybody who waits."""
        memory, offset = self._mapped.memory, self._offset
        count = (_COUNT.unpack_from(memory, offset)[0] + 1) & 0xFFFFFFFF
        self._mapped.put(offset, _COUNT.pack(count))
        if memory[offset + 4 : offset + 8] != _ZERO:
            self._mapped.put(offset + 4, _ZERO)
            self._wake()

    def _wake(self) -> None:
        if _SYSCALL_FUTEX is not None:
            self._syscall(_SYSCALL_FUTEX, self._address, _FUTEX_WAKE, _EVERYBODY, None, None, 0)

    def wait(self, seen: int, timeout_s: float) -> int:
        """Wait until the count is no longer `seen`, at most `timeout_s` seconds; return the count.

        May return early (a signal, another bell's ring): the caller looks at what it waits for.
        """
        if timeout_s <= 0 or self.value() != seen:
            return self.value()
        if _SYSCALL_FUTEX is None:
            return self._poll(seen, timeout_s)
        self._mapped.put(self._offset + 4, _ONE)
        seconds = int(timeout_s)
        span = _Timespec(seconds, int((timeout_s - seconds) * 1e9))
        word = ctypes.c_uint32(seen)
        self._syscall(_SYSCALL_FUTEX, self._address, _FUTEX_WAIT, word, ctypes.byref(span), None, 0)
        return self.value()

    def _poll(self, seen: int, timeout_s: float) -> int:
        end = time.monotonic() + timeout_s
        while self.value() == seen and time.monotonic() < end:
            time.sleep(_POLL_S)  # noqa: TID251 (no futex on this machine: this is the bell's wait)
        return self.value()
