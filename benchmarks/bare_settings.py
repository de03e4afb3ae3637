"""The platform's settings with one address more: the bare view, for `benchmarks/rest.py` alone."""

from postdate.settings import *  # noqa: F403

ROOT_URLCONF = "bare_view"
