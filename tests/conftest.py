"""How properties are tried: examples are counted, not timed, because machines are busy.

In CI they are the same ones every time: a landing is not the moment to search. Everywhere else each
run searches anew, and prints how to repeat what it found.
"""

import os

from hypothesis import HealthCheck, settings

_HOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("search", **_HOW)
settings.register_profile("ci", derandomize=True, database=None, **_HOW)
settings.load_profile("ci" if os.environ.get("CI") else "search")
