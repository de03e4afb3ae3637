"""Measuring: the machine, the rounds, the goals, and one JSON object that holds them all.

A benchmark is a script: `.venv/bin/python benchmarks/store.py [--quick] [--out FILE]`. It prints
one JSON object and exits 0 whether or not its goals are met; nothing asserts on a speed. What is
compared is measured in turns in the same run (ours, peer, ours, peer, …), because a machine's
speed drifts; a ratio is the ratio of the medians, and the best round is printed beside it.

| Key | Holds |
|---|---|
| `machine` | processor, cores, memory, kernel, Python |
| `settings` | sizes of the run |
| `figures` | name -> unit, median, best, and every round |
| `ratios` | name -> ours / peer, of the medians |
| `goals` | what was aimed at, the value, and whether it is met |
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# First of all: a benchmark may be called as a package of ours is.
sys.path[:0] = [str(ROOT)]
if str(ROOT / "platform") not in sys.path:
    sys.path.append(str(ROOT / "platform"))


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity."""

    #: What the numbers count, as `messages/s` or `ms`.
    unit: str
    #: One value a round, in the order of the rounds.
    rounds: tuple[float, ...]
    #: Whether more is better.
    higher_is_better: bool = True

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def best(self) -> float:
        return max(self.rounds) if self.higher_is_better else min(self.rounds)

    def as_dict(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "median": rounded(self.median),
            "best": rounded(self.best),
            "rounds": [rounded(value) for value in self.rounds],
        }


@dataclass(frozen=True, slots=True)
class Goal:
    """One promise of the design, beside what came out."""

    what: str
    value: float
    #: The bound that is promised, and the one aimed at, if any.
    bound: float
    aim: float | None
    #: True: the value has to reach the bound. False: it must not pass it.
    at_least: bool
    met: bool


@dataclass(slots=True)
class Report:
    """Everything that one benchmark found."""

    benchmark: str
    quick: bool
    settings: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, unit: str, values: Sequence[float], *, lower: bool = False) -> None:
        self.figures[name] = Figure(unit, tuple(values), higher_is_better=not lower)
        print(f"{name}: {rounded(self.figures[name].median):,} {unit}", file=sys.stderr)

    def compare(self, name: str, ours: str, peer: str) -> float:
        """The ratio of two figures' medians, kept under a name."""
        self.ratios[name] = rounded(self.figures[ours].median / self.figures[peer].median)
        return self.ratios[name]

    def at_least(self, what: str, value: float, bound: float, *, aim: float | None = None) -> None:
        self.goals.append(Goal(what, rounded(value), bound, aim, True, value >= bound))

    def at_most(self, what: str, value: float, bound: float, *, aim: float | None = None) -> None:
        self.goals.append(Goal(what, rounded(value), bound, aim, False, value <= bound))

    def as_dict(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "quick": self.quick,
            "machine": machine(),
            "settings": self.settings,
            "figures": {name: figure.as_dict() for name, figure in self.figures.items()},
            "ratios": self.ratios,
            "goals": [asdict(goal) for goal in self.goals],
            "notes": self.notes,
        }


def run(name: str, measure: Callable[[Report], None], purpose: str | None) -> None:
    """The main program of a benchmark: options, measuring, JSON."""
    parser = argparse.ArgumentParser(prog=f"benchmarks/{name}.py", description=purpose)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all")
    parser.add_argument("--out", type=Path, help="write the JSON to this file as well")
    options = parser.parse_args()
    report = Report(name, quick=options.quick)
    measure(report)
    text = json.dumps(report.as_dict(), indent=2)
    if options.out:
        options.out.write_text(text + "\n")
    print(text)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": _first_of("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory": _first_of("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load_before": os.getloadavg()[0],
    }


def rate(count: int, work: Callable[[], object]) -> float:
    """How many a second: the work done once, count / elapsed time."""
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p90, p99, p99.9 and maximum by nearest rank."""
    ordered = sorted(values)
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
    return {name: ordered[max(0, round(len(ordered) * share) - 1)] for name, share in ranks.items()}


def rounded(value: float) -> float:
    """Four significant digits: more would be noise."""
    return float(f"{value:.4g}") if abs(value) < 1000 else float(round(value))


def _first_of(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            return line.split(":", 1)[1].strip()
    return "unknown"
