"""The leash: a report's process ends when the process that launched it ends, however that ends."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies; at once if it is dead already.

    Spark's JVM reads from this process and ends with it, and so do its Python workers.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
