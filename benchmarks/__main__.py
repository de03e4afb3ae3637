"""All benchmarks, or those that are named: `python -m benchmarks [store rest …] [--quick]`.

Each runs in a process of its own, one after another, and its JSON is printed, and kept in
`benchmarks/results/<name>.json` unless it was a quick run.
"""

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NAMES = (
    "store",
    "rest",
    "lateness",
    "idle",
    "memory",
    "forecast",
    "longpoll",
    "console",
    "consume",
    "analytics",
    "reporting",
    "renewing",
    "timer_engines",
)
#: Only when named: it needs Maven, Java and half an hour.
NAMED_ONLY = ("rocketmq",)


def main() -> None:
    """Run them in turn; exit code 1 when one of them broke, whatever the figures are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(NAMES + NAMED_ONLY)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: do they run at all")
    options = parser.parse_args()
    if unknown := set(options.names) - {*NAMES, *NAMED_ONLY}:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    broken = []
    for name in options.names or NAMES:
        print(f"== {name}", file=sys.stderr, flush=True)
        command = [sys.executable, str(FOLDER / f"{name}.py"), *_options(name, options.quick)]
        if subprocess.run(command, check=False).returncode != 0:
            broken.append(name)
    if broken:
        sys.exit(f"did not run to its end: {', '.join(broken)}")


def _options(name: str, quick: bool) -> list[str]:
    results = FOLDER / "results"
    results.mkdir(exist_ok=True)
    return ["--quick"] if quick else ["--out", str(results / f"{name}.json")]


if __name__ == "__main__":
    main()
