"""Where reports keep their files, below the data directory."""

import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

#: What a run of Spark imports, apart from what the platform has anyway.
_PACKAGES = ("pyspark", "pyarrow", "pandas", "matplotlib")
_CHECK_SECONDS_MAX = 120


def reports_dir() -> Path:
    """Partials, files of runs, and the reports' lock."""
    directory: Path = settings.POSTDATE.data_dir / "reports"
    return directory


def run_dir(run_id: str) -> Path:
    """The files of one run: log, report, charts."""
    return reports_dir() / "runs" / run_id


def are_packages_ready() -> bool:
    """Whether what Spark needs can be imported: the installation may be half-way."""
    if (Path(sys.prefix) / ".installed-analytics").exists():
        return True
    invalidate_caches()  # They may have come since this process looked last.
    if any(find_spec(name) is None for name in _PACKAGES):
        return False
    checked = subprocess.run(  # noqa: S603 (this interpreter)
        [sys.executable, "-c", f"import {', '.join(_PACKAGES)}"],
        capture_output=True, timeout=_CHECK_SECONDS_MAX, check=False,
    )  # fmt: skip
    return checked.returncode == 0
