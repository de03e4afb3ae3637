"""Timed messages kept four ways, and what seed 001 (section 3.3.3) says against RocksDB.

    .venv/bin/python benchmarks/timer_engines.py [--quick] [--messages N] [--out FILE] [--plot PNG]

The claim: with whole messages as values, compaction grows with what is stored, and writing becomes
slower and slower; with keys and values apart, writing keeps its speed and reading suffers. So this
measures, for each form of `timer_forms`: the rate of enqueueing as the backlog grows, processor
time and bytes written to the device for each message, bytes on the disk, the rate of reading out in
due order with the records, from memory and from the device, the effect of the message's size, and
what rolling costs the wheel. Prints one JSON object; ten million need some 10 GB of disk.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measuring import machine, rounded

from benchmarks.timer_forms import FORMS, START_MS, Form, Messages, TimelineForm
from queues.store import Outgoing, Store, StoreSettings
from queues.store.disk import Disk
from queues.store.settings import Sizes
from scheduler.engine.step import TimerStep
from scheduler.rocksdb.step import RocksStep
from scheduler.wheel.step import WheelStep

BATCH = 16_384
DAY_MS = 86_400_000
HOUR_MS = 3_600_000
POINTS = 20
COLD_READS = 20_000


def record_pool(size: int) -> list[bytes]:
    """Records of a size: half of it chance, as JSON with ids is."""
    chance = np.random.default_rng(3)
    return [chance.bytes(size // 2).hex().encode().ljust(size, b"{") for _ in range(1_024)]


def written_bytes() -> int:
    """What this process had written to the device."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("write_bytes"):
            return int(line.split()[1])
    return 0


def disk_bytes(folder: Path) -> int:
    """What the files take, sparse parts left out."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def grow(form: Form, root: Path, count: int, size: int) -> dict[str, Any]:
    """Enqueue `count` messages due within a day; the rate at each twentieth of the way."""
    chance, pool = np.random.default_rng(7), record_pool(size)
    points, spent, done = [], 0.0, 0
    written, processor = written_bytes(), time.process_time()
    making = 0.0
    mark_spent, mark_done, mark_processor = 0.0, 0, processor
    while done < count:
        began = time.process_time()
        messages = Messages(chance, done, min(BATCH, count - done), DAY_MS)
        records = [pool[number % 1_024] for number in range(len(messages.offsets))]
        making += time.process_time() - began
        began = time.perf_counter()
        form.put(messages, records)
        spent += time.perf_counter() - began
        done += len(messages.offsets)
        if done - mark_done >= count / POINTS or done == count:
            per_second = (done - mark_done) / (spent - mark_spent)
            used = time.process_time() - making
            cpu_us = rounded((used - mark_processor) / (done - mark_done) * 1e6)
            point = {"backlog": done, "per_second": round(per_second), "cpu_us": cpu_us}
            points.append(point)
            mark_spent, mark_done, mark_processor = spent, done, used
    processor = time.process_time() - processor - making
    os.sync()
    part = max(1, len(points) // 4)
    return {
        "points": points,
        "per_second": round(count / spent),
        "last_to_first": rounded(_mean(points[-part:]) / _mean(points[:part])),
        "cpu_last_to_first": rounded(
            _mean(points[-part:], "cpu_us") / _mean(points[:part], "cpu_us")
        ),
        "cpu_us_per_message": rounded(processor / count * 1e6),
        "device_bytes_per_message": rounded((written_bytes() - written) / count),
        "disk_bytes_per_message": rounded(disk_bytes(root) / count),
    }


def _mean(points: list[dict[str, float]], what: str = "per_second") -> float:
    return sum(point[what] for point in points) / len(points)


def forget_pages(folder: Path) -> None:
    """Have the kernel drop what it has of the files."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def read_out(form: Form, root: Path, log: Path, size: int) -> dict[str, Any]:
    """Read what is due within two hours, with the records, from memory and from the device."""
    until_ms = START_MS + 5_000 + 2 * HOUR_MS
    began = time.perf_counter()
    numbers, record_bytes = form.read(START_MS + 5_000, until_ms)
    bare = time.perf_counter() - began
    told: dict[str, Any] = {"messages": len(numbers), "per_second": round(len(numbers) / bare)}
    if record_bytes:
        told["with_records_per_second"] = told["per_second"]
        if isinstance(form, TimelineForm):
            forget_pages(root)
            form.reopen()
            forget_pages(root)
        last_ms = START_MS + 5_000 + 4 * HOUR_MS
        began = time.perf_counter()
        numbers, _ = form.read(last_ms - 2 * HOUR_MS, last_ms)
        told["cold_per_second"] = round(len(numbers) / (time.perf_counter() - began))
        return told
    began = time.perf_counter()
    fetch(log, np.sort(numbers), size)
    fetched = time.perf_counter() - began
    told["with_records_per_second"] = round(len(numbers) / (bare + fetched))
    some = numbers[:COLD_READS]
    for name, order in (("cold_due_order", some), ("cold_per_second", np.sort(some))):
        forget_pages(log.parent)
        began = time.perf_counter()
        fetch(log, order, size)
        told[name] = round(len(some) / (time.perf_counter() - began))
    return told


def fetch(log: Path, numbers: np.ndarray, size: int) -> None:
    """Read records one by one from where they lie."""
    descriptor = os.open(log, os.O_RDONLY)
    for number in numbers.tolist():
        os.pread(descriptor, size, number * size)
    os.close(descriptor)


def make_log(folder: Path, count: int, size: int) -> Path:
    """A log of records, for the forms that keep positions."""
    folder.mkdir()
    pool = record_pool(size)
    with (folder / "log").open("wb") as file:
        for first in range(0, count, 65_536):
            number = min(65_536, count - first)
            file.write(b"".join([pool[at % 1_024] for at in range(number)]))
    return folder / "log"


class Turning:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.wall_ms = START_MS

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.wall_ms


def rolling(count: int, make: type[WheelStep | RocksStep], days: int) -> dict[str, Any]:
    """What messages due `days` from now cost an engine until then, whatever the store does."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Turning()
        settings = StoreSettings(sizes=Sizes(timer_window_slots=604_800))
        with Store.open(Path(folder), settings, clock=clock, disk=Disk()) as store:
            chance = np.random.default_rng(5)
            due_ms = (
                START_MS + chance.integers((days - 1) * DAY_MS, days * DAY_MS, count)
            ).tolist()
            for first in range(0, count, 1_000):
                part = due_ms[first : first + 1_000]
                ids = store.new_ids("far", START_MS, len(part))
                store.send(
                    [
                        Outgoing("far", 0, id_, b"x" * 100, START_MS, due_ms=due)
                        for id_, due in zip(ids, part, strict=True)
                    ]
                )
            step: TimerStep = make(store)
            step.open()
            settle(step, clock)
            written, processor = step.engine.files().get("log_end", 0), time.process_time()
            while clock.wall_ms < START_MS + (days - 1) * DAY_MS:
                clock.wall_ms += DAY_MS // 4
                settle(step, clock)
            processor = time.process_time() - processor
            again = step.engine.files().get("log_end", 0) - written
            step.close()
    return {
        "days": days,
        "bytes_written_again_per_message": rounded(again / count),
        "cpu_us_per_message": rounded(processor / count * 1e6),
    }


def settle(step: TimerStep, clock: Turning) -> None:
    """Step until nothing is left to do now."""
    while step.advance(clock.wall_ms).more:
        pass


def measure(
    count: int, size: int, sizes: tuple[int, ...], small: int, folder: Path
) -> dict[str, Any]:
    """Everything, one form after another."""
    log = make_log(folder / "log", count, size)
    forms: dict[str, Any] = {}
    for name, make in FORMS.items():
        root = folder / "form"
        root.mkdir()
        form = make(root)
        grown = grow(form, root, count, size)
        forms[name] = grown | {"read_out": read_out(form, root, log, size)}
        form.close()
        shutil.rmtree(root)
        forms[name]["by_size"] = {}
        for other in sizes:
            root.mkdir()
            form = make(root)
            found = grow(form, root, small, other)
            del found["points"]
            forms[name]["by_size"][str(other)] = found
            form.close()
            shutil.rmtree(root)
        print(f"{name}: {grown['per_second']:,} messages/s", file=sys.stderr, flush=True)
    return forms


def verdict(forms: dict[str, Any]) -> list[str]:
    """What became of the claim, in sentences with the figures."""
    whole, apart = forms["rocksdb records"], forms["rocksdb positions"]
    slower = whole["last_to_first"]
    holds = "holds" if slower < 0.7 else "does not hold"
    reads = apart["read_out"]["cold_per_second"] / max(whole["read_out"]["cold_per_second"], 1)
    suffers = "holds" if reads < 0.5 else "does not hold"
    return [
        (
            f"Whole records as values: writing ends at {slower} of the speed that it begins with; "
            f"that it becomes ever slower {holds} here. (Processor time a message grew to "
            f"{whole['cpu_last_to_first']} of what it was.)"
        ),
        (
            f"Keys and values apart: records come from the device at {reads:.2f} of the speed of "
            f"whole ones; that reading suffers {suffers} here."
        ),
    ]


def plot(result: dict[str, Any], path: Path) -> None:
    """The rate of enqueueing over the backlog, one line a form."""
    import matplotlib as mpl  # noqa: PLC0415 (only where a plot is asked for)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), dpi=80)
    told = (("per_second", "enqueued, messages/s"), ("cpu_us", "processor time, µs a message"))
    for axes, (what, label) in zip(panels, told, strict=True):
        for name, form in result["forms"].items():
            backlog = [point["backlog"] / 1e6 for point in form["points"]]
            axes.plot(backlog, [point[what] for point in form["points"]], marker=".", label=name)
        axes.set_yscale("log")
        axes.set_xlabel("messages that wait, millions")
        axes.set_ylabel(label)
        axes.grid(visible=True, which="both", alpha=0.3)
    panels[0].legend(fontsize="small", loc="lower left")
    size = result["settings"]["record_bytes"]
    figure.suptitle(f"Enqueueing as the backlog grows ({size} bytes each)")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all")
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--record-bytes", type=int, default=300)
    parser.add_argument("--folder", type=Path, help="where to keep the files meanwhile")
    parser.add_argument("--out", type=Path, help="write the JSON to this file as well")
    parser.add_argument("--plot", type=Path, help="draw the rates into this PNG")
    asked = parser.parse_args()
    count = 60_000 if asked.quick else asked.messages
    small, far = max(count // 10, 30_000), max(count // 50, 2_000)
    sizes = (100, 1_000) if asked.quick else (100, 1_000, 4_000)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        forms = measure(count, asked.record_bytes, sizes, small, Path(folder))
    result = {
        "benchmark": "timer_engines",
        "quick": asked.quick,
        "machine": machine(),
        "settings": {
            "messages": count, "record_bytes": asked.record_bytes, "batch": BATCH,
            "by_size_messages": small, "rolling_messages": far,
        },
        "forms": forms,
        "rolling": {"wheel": rolling(far, WheelStep, 40), "rocksdb": rolling(far, RocksStep, 40)},
        "verdict": verdict(forms),
    }  # fmt: skip
    text = json.dumps(result, indent=2)
    if asked.out:
        asked.out.write_text(text + "\n")
    if asked.plot:
        plot(result, asked.plot)
    print(text)


if __name__ == "__main__":
    main()
