"""Lateness at the hand-over while a report is made, beside the same load without one, in turns.

1,000 messages come due a second on a platform of its own, half of them timed and half in a level
(`lateness.py`). In every other round a report is asked for over REST as the load begins: Spark
starts from cold in a process of its own, as always, and reads that platform's log. Of such a round
only what was due before the report was ready counts.
"""

import threading
import time

from lateness import GRACE_S, LEVEL, LEVEL_MS, add_quantiles
from measuring import Report, run
from platforms import make_topic, running_platform
from waiting import (
    QUEUES,
    Store,
    await_delivered,
    delivered,
    now_ms,
    opened,
    send_level_paced,
    send_timed,
)

from queues.demo.client import Client

PER_SECOND = 1_000
REPORT_S = 300
LOOK_S = 0.25
ALONE, BESIDE = "without a report", "with a report"


def main(report: Report) -> None:
    """Rounds without a report and with one, in turns."""
    seconds, rounds = (3, 1) if report.quick else (30, 3)
    report.settings = {"seconds_a_load": seconds, "rounds": rounds, "due_a_second": PER_SECOND}
    came: dict[str, list[float]] = {ALONE: [], BESIDE: []}
    took_s: list[float] = []
    with running_platform() as running, opened(running.data_dir) as store:
        client = Client(running.base_url, api_key=running.api_key, stop=threading.Event())
        for number in range(rounds):
            for name, values in came.items():
                topics = [f"{kind}-{name.split()[0]}-{number}" for kind in ("timed", "levels")]
                for topic in topics:
                    make_topic(running, topic, queues=QUEUES)
                making = Making(client) if name == BESIDE else None
                load(store, *topics, seconds=seconds)
                ready_ms = now_ms() if making is None else making.ready_ms()
                values.extend(lateness_until(store, topics, ready_ms))
                if making is not None:
                    took_s.append(making.took_s)
        client.close()
    report.add("a report beside the load, from cold", "s", took_s, lower=True)
    found = {name: add_quantiles(report, name, values) for name, values in came.items()}
    report.at_most("1,000 due a second beside a report, p50 ms", found[BESIDE]["p50"], 1.0)
    report.at_most("1,000 due a second beside a report, p99 ms", found[BESIDE]["p99"], 3.0)


class Making:
    """A report on its way."""

    def __init__(self, client: Client) -> None:
        body = {"report": "lateness"}
        self._client = client
        self._operation = client.expect("POST", "/api/v1/reports", body, statuses=(202,)).body
        self._thread = threading.Thread(target=self._wait)
        self._begun_ms, self._ready_ms = now_ms(), 0
        self._thread.start()

    def ready_ms(self) -> int:
        """When it was ready."""
        self._thread.join()
        if not self._ready_ms:
            raise RuntimeError(self._operation)
        return self._ready_ms

    @property
    def took_s(self) -> float:
        """From the request to the result."""
        return (self._ready_ms - self._begun_ms) / 1000

    def _wait(self) -> None:
        path = f"/api/v1/operations/{self._operation['id']}"
        give_up = time.monotonic() + REPORT_S
        while time.monotonic() < give_up and self._operation["state"] in ("queued", "running"):
            time.sleep(LOOK_S)
            self._operation = self._client.expect("GET", path).body
        if self._operation["state"] == "succeeded":
            self._ready_ms = now_ms()


def load(store: Store, timed: str, levels: str, *, seconds: int) -> None:
    """Both kinds at a steady rate, to the last hand-over."""
    half = PER_SECOND // 2
    send_timed(store, timed, half * seconds, from_ms=now_ms() + LEVEL_MS, span_ms=seconds * 1000)
    send_level_paced(store, levels, level=LEVEL, per_second=half, seconds=seconds)
    for topic in (timed, levels):
        await_delivered(store, topic, half * seconds - 1, within_s=GRACE_S)


def lateness_until(store: Store, topics: list[str], until_ms: int) -> list[float]:
    """How late what was due before a time was handed over, ms."""
    late: list[float] = []
    for topic in topics:
        found = delivered(store, topic)
        assert found.lateness_ms.min() >= 0, "a message was early"
        late += found.lateness_ms[found.due_ms < until_ms].astype(float).tolist()
    return late


if __name__ == "__main__":
    run("reporting", main, __doc__)
