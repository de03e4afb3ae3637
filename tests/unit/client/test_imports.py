"""`import postdate` costs nothing and needs nothing."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_package_itself_imports_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import postdate; print(set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT / "platform")},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "{'postdate'}", done.stderr
