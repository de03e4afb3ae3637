"""The benchmarks run; what they find is for people to judge."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_store_benchmark_prints_figures_ratios_and_goals_as_json() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "store.py"), "--quick"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    report = json.loads(ended.stdout)
    assert report["quick"] is True
    assert report["machine"]["cores"] >= 1
    assert {"store batch", "store single", "hand-over", "wheel enqueue"} <= set(report["figures"])
    assert all({"what", "value", "bound", "met"} <= set(goal) for goal in report["goals"])
