"""Asking the future with ten million messages waiting: forecast, first page, further page, count.

The schedule table and the ConsumeQueue of the timer queue are filled vectorised, with due times
spread over two days and eight topics; what is due first, and so is shown, are real messages with a
tag and a key, the others' units lead to the last of these. A tenth of the blocks is settled. Each
figure is one call as the REST API makes it, its answer encoded, in a process that looked before.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import django
import numpy as np
from measuring import Report, quantiles, run  # Its import puts the roots on the path.

os.environ["POSTDATE_ENV_FILE"] = ""
os.environ["POSTDATE_DATA_DIR"] = _data_dir = tempfile.mkdtemp(prefix="postdate-forecast-")
os.environ["DJANGO_SETTINGS_MODULE"] = "postdate.settings"
django.setup()

from queues import wires  # noqa: E402 (after the set-up)
from queues.access import Caller, Patterns  # noqa: E402 (after the set-up)
from queues.api.codec import encode  # noqa: E402 (after the set-up)
from queues.api.telling import tell_summary  # noqa: E402 (after the set-up)
from queues.selectors.forecast import forecast  # noqa: E402 (after the set-up)
from queues.selectors.listing import Filter, list_messages  # noqa: E402 (after the set-up)
from queues.selectors.scheduled import Window  # noqa: E402 (after the set-up)
from queues.store import (  # noqa: E402 (after the set-up)
    Outgoing,
    Store,
    StoreSettings,
)
from queues.store.clock import SystemClock  # noqa: E402 (after the set-up)
from queues.store.consumequeue import DISK_UNIT  # noqa: E402 (after the set-up)
from queues.store.limits import SCHEDULE_UNITS  # noqa: E402 (after the set-up)
from queues.store.names import TIMER_TOPIC  # noqa: E402 (after the set-up)
from queues.testing import OwnWiring  # noqa: E402 (after the set-up)

DAY_MS = 86_400_000
TOPICS = ("orders", "mail", "billing", "reports", "trials", "trips", "invoices", "alerts")
REAL = 20_000


def main(report: Report) -> None:
    """All figures over one store."""
    messages, rounds = (200_000, 5) if report.quick else (10_000_000, 50)
    report.settings = {"waiting": messages, "topics": len(TOPICS), "rounds": rounds}
    with tempfile.TemporaryDirectory() as folder:
        measure(report, Path(folder), messages, rounds)


def measure(report: Report, folder: Path, messages: int, rounds: int) -> None:
    """Fill a store and ask it."""

    clock = SystemClock()
    with Store.open(folder / "store", StoreSettings()) as store:
        wiring = OwnWiring(store, clock)
        wires.plug_in(wiring)
        now_ms = clock.now_ms()
        began = time.perf_counter()
        fill(store, messages, now_ms)
        report.notes.append(f"filled in {time.perf_counter() - began:.1f} s")
        ask(report, now_ms, rounds)
        wiring.watch.close()
        wiring.consuming.close()


def fill(store: Store, messages: int, now_ms: int) -> None:
    """Real messages that are due first, then units alone."""
    for first in range(0, REAL, 1000):
        topic = TOPICS[first // 1000 % len(TOPICS)]
        ids = store.new_ids(topic, now_ms, 1000)
        store.send(
            [
                Outgoing(
                    topic, 0, one, bytes(100), now_ms, tag=f"tag-{number % 10}",
                    keys=(f"order-{first + number}",), due_ms=now_ms + 60_000 + first + number,
                )
                for number, one in enumerate(ids)
            ]
        )  # fmt: skip
    parts = store._parts  # noqa: SLF001 (no door leads to units without messages)
    queue = parts.queues.obtain(TIMER_TOPIC, 0)
    table = parts.table_of(queue)
    numbers = np.array([store.outlook.topic_number(topic) for topic in TOPICS])
    random = np.random.default_rng(4)
    unit = store.read_units(TIMER_TOPIC, 0, REAL - 1, 1)[0]
    for start in range(REAL, messages, SCHEDULE_UNITS):
        count = min(SCHEDULE_UNITS, messages - start)
        offsets = np.arange(start, start + count)
        units = np.zeros(count, DISK_UNIT)
        for field in ("log_offset", "size", "tags_code"):
            units[field] = unit[field]
        parts.consume_queues.make_room(TIMER_TOPIC, 0, start, start + count)
        parts.consume_queues.write(TIMER_TOPIC, 0, start, units.tobytes())
        table.make_room(start + count)
        dues = now_ms + 120_000 + random.integers(0, 2 * DAY_MS, count)
        table.add_many(offsets, dues, numbers[random.integers(0, len(TOPICS), count)])
        if start // SCHEDULE_UNITS % 10 == 0:
            table.settle_many(offsets, np.full(count, 88, np.int64))
    parts.queues.set_max(queue, messages)


def ask(report: Report, now_ms: int, rounds: int) -> None:
    """Every question, as often as there are rounds."""

    caller = Caller(0, "benchmark", frozenset(), Patterns(("*",)), Patterns(("*",)))
    two = Caller(0, "benchmark", frozenset(), Patterns(TOPICS[:2]), Patterns(()))
    six = Caller(0, "benchmark", frozenset(), Patterns(TOPICS[:6]), Patterns(()))
    hour = Window(None, None, now_ms, now_ms + 3_600_000)

    def page(wanted: Filter, who: Caller = caller) -> Callable[[], object]:
        def look() -> object:
            listed = list_messages(wanted, caller=who, position=None, limit=50)
            return encode([tell_summary(view) for view in listed.views])

        return look

    def future(step_ms: int, topic: str | None) -> Callable[[], object]:
        return lambda: encode(
            forecast(
                from_ms=now_ms, to_ms=now_ms + DAY_MS, step_ms=step_ms, topic=topic, now_ms=now_ms
            ).counts
        )

    questions = {
        "first page": page(Filter(Window())),
        "first page, one topic": page(Filter(Window("mail"))),
        "first page, a key of two topics": page(Filter(Window()), two),
        "first page, a key of six topics": page(Filter(Window()), six),
        "first page, an hour": page(Filter(hour)),
        "first page, a tag": page(Filter(Window(), tag="tag-3")),
        "first page, a key": page(Filter(Window(), key="order-77")),
        "forecast, 24 h by minute": future(60_000, None),
        "forecast, 24 h by minute, one topic": future(60_000, "mail"),
        "forecast, 24 h by second": future(1000, None),
    }
    for name, question in questions.items():
        first_ms = timed_ms(question)
        found = quantiles([timed_ms(question) for _ in range(rounds)])
        report.add(name, "ms", [found["p50"]], lower=True)
        report.notes.append(f"{name}: first {first_ms:.1f} ms, p99 {found['p99']:.1f} ms")
        bound = 200 if name.startswith("forecast") else 100
        report.at_most(f"{name}, p50 ms", found["p50"], bound)


def timed_ms(question: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    question()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    try:
        run("forecast", main, __doc__)
    finally:
        shutil.rmtree(_data_dir, ignore_errors=True)
