"""How properties are tried: examples are counted, not timed, because machines are busy.

In CI they are the same ones every time: a landing is not the moment to search. Everywhere else each
run searches anew, and prints how to repeat what it found.
"""

import gc
import os
from pathlib import Path

from hypothesis import HealthCheck, settings

#: So many more open descriptors than after the last time, and a test process collects garbage.
DESCRIPTORS_MORE = 500

_HOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("search", **_HOW)
settings.register_profile("ci", derandomize=True, database=None, **_HOW)
settings.load_profile("ci" if os.environ.get("CI") else "search")


class _Descriptors:
    """Those of this process."""

    after_collecting = 0


def pytest_runtest_teardown() -> None:
    """Let what closed stores still hold go: a mapping keeps its descriptor until it is collected.

    Collecting after every test would take longer than the tests.
    """
    if _open_descriptors() > _Descriptors.after_collecting + DESCRIPTORS_MORE:
        gc.collect()
        _Descriptors.after_collecting = _open_descriptors()


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
