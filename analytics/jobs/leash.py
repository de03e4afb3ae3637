"""The leash: a report's process disturbs nobody, and ends when whoever launched it ends."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
#: The lowest priority: what a hand-over needs, it gets at once.
NICENESS = 19


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies; at once if it is dead already.

    Spark's JVM reads from this process and ends with it, and so do its Python workers.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def step_back() -> None:
    """Give way to every other process; Spark's own inherit it."""
    os.nice(NICENESS)
