"""`make simulate`: play thousands of seeded worlds, or one again.

First the same seeds in every run, then new ones, drawn from the machine's chance, for some seconds
more. A seed that fails is printed with the line that plays it again. One of the first fails the
run; a new one only tells of a fault that was there before, so it keeps no change out. Chance in
Python's own hashes is switched off, so that a seed means the same in every run.
"""

import argparse
import logging
import os
import random
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.world import ENGINES, play

#: Seeds that a worker plays before it says how it went.
_CHUNK = 10


def main() -> None:
    """Exit code 0 when every world of the known seeds kept its promises, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this one again, and show the fault")
    parser.add_argument("--first", type=int, default=0, help="the first seed of the range")
    parser.add_argument("--count", type=int, default=3_000, help="so many seeds")
    parser.add_argument("--seconds", type=float, default=300, help="begin none of them after this")
    parser.add_argument("--new", type=float, default=20, help="seconds for new seeds behind them")
    parser.add_argument("--steps", type=int, help="turns a world lives; chosen by the seed if not")
    parser.add_argument("--engine", choices=ENGINES, help="chosen by the seed if not")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    _without_chance_in_hashes()
    logging.disable(logging.CRITICAL)  # What the store says of crashes would fill the screen.
    if options.seed is not None:
        world = play(options.seed, steps=options.steps, engine=options.engine)
        print(f"seed {options.seed} ({world.engine}): {dict(world.tally)}, {world.history.counts}")
        return
    failed = _play_many(options, options.first, options.count, options.seconds)
    if options.new:
        first = random.SystemRandom().randrange(10**6, 10**9)
        if _play_many(options, first, 10**6, options.new):
            print("NEW FAULT: the seeds above are to become tests, and the faults to be mended")
    sys.exit(1 if failed else 0)


def _without_chance_in_hashes() -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":
        arguments = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 (itself)


def _play_many(options: argparse.Namespace, first: int, count: int, seconds: float) -> int:
    """Play seeds from `first` on, side by side; how many failed."""
    began, played, failed, tally = time.monotonic(), 0, 0, Counter[str]()
    last = first + count
    chunks = iter(range(first, last, _CHUNK))
    with ProcessPoolExecutor(options.jobs) as pool:
        running = [
            pool.submit(_chunk, start, min(start + _CHUNK, last), options.steps, options.engine)
            for _, start in zip(range(2 * options.jobs), chunks, strict=False)
        ]
        while running:
            faults, befell, count = running.pop(0).result()
            played, failed = played + count, failed + len(faults)
            tally.update(befell)
            for seed, text in faults:
                print(f"FAILED: make simulate SEED={seed}\n{text}", flush=True)
            start = next(chunks, None)
            if start is not None and time.monotonic() - began < seconds:
                stop = min(start + _CHUNK, last)
                running.append(pool.submit(_chunk, start, stop, options.steps, options.engine))
    took_s = time.monotonic() - began
    print(f"{played:,} seeds from {first} on in {took_s:.0f} s, {failed} failed")
    print(", ".join(f"{name}: {count:,}" for name, count in sorted(tally.items())))
    return failed


def _chunk(
    start: int, stop: int, steps: int | None, engine: str | None
) -> tuple[list[tuple[int, str]], Counter[str], int]:
    """Play a few seeds; those that failed with their traces, and what befell the worlds."""
    faults, tally = [], Counter[str]()
    for seed in range(start, stop):
        try:
            world = play(seed, steps=steps, engine=engine)
        except Exception:  # noqa: BLE001 (whatever it is, it is a fault of this seed)
            faults.append((seed, traceback.format_exc(limit=-4)))
        else:
            tally.update(world.tally)
            tally["messages"] += len(world.history.messages)
            tally["answers"] += len(world.asked)
    return faults, tally, stop - start


if __name__ == "__main__":
    main()
