"""How properties are tried: examples are counted, not timed, because machines are busy.

In CI they are the same ones every time: a landing is not the moment to search. Everywhere else each
run searches anew, and prints how to repeat what it found.
"""

import gc
import os
from pathlib import Path

from hypothesis import HealthCheck, settings

#: Open descriptors of a test process above which it collects garbage.
DESCRIPTORS_MAX = 500

_HOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("search", **_HOW)
settings.register_profile("ci", derandomize=True, database=None, **_HOW)
settings.load_profile("ci" if os.environ.get("CI") else "search")


def pytest_runtest_teardown() -> None:
    """Let what closed stores still hold go: a mapping keeps its descriptor until it is collected.

    Collecting after every test would take longer than the tests.
    """
    if len(list(Path("/proc/self/fd").iterdir())) > DESCRIPTORS_MAX:
        gc.collect()
