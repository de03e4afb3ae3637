"""Departure: what a web worker does when it is told to stop, and when it ends.

The web server stops once every request has been answered, and a long poll may wait for twenty
seconds. So the signal that stops the server also lets the polls go: the server owns the signal's
handler, and here is only read, in a thread, that it came.
"""

import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.util import Finalize

_STOPS = frozenset({signal.SIGTERM, signal.SIGINT})
#: Among the last things of a process; larger goes earlier.
_EXIT_PRIORITY = 10


def arrange_departure(on_stop: Callable[[], None], on_end: Callable[[], None]) -> None:
    """Have `on_stop` called when this process is told to stop, and `on_end` when it ends.

    Only the main thread can arrange the first; a server that loads the application elsewhere stops
    as soon as its last poll has run out.
    """
    # The server's workers are children of multiprocessing, which run these and no atexit functions.
    Finalize(None, on_end, exitpriority=_EXIT_PRIORITY)
    if threading.current_thread() is not threading.main_thread():
        return
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(heard, on_stop), name="departure", daemon=True).start()


def _listen(heard: int, on_stop: Callable[[], None]) -> None:
    while number := os.read(heard, 1):
        if number[0] in _STOPS:
            on_stop()
            return
