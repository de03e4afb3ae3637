"""The REST API's speed: single sends against a bare DRF view, and batch sends.

The platform runs as `up` runs it (two web processes, the scheduler pair beside it) with one address
more: a bare DRF view that parses the same JSON and answers 201. Both are asked in turns, in the
same server.
"""

import json
import os

from load import Request, client_name, put_load
from measuring import ROOT, Report, run
from platforms import running_platform

from queues.demo.launching import Running

MESSAGE = {
    "body": {"order": 1, "note": "x" * 60},
    "tag": "order-timeout",
    "keys": ["order-1"],
    "delay_seconds": 3600,
}
BATCH = 1000
CONNECTIONS = 16
BATCH_CONNECTIONS = 4
ROUNDS = 5


def main(report: Report) -> None:
    """Rounds of bare view, single send and batch send, in turns."""
    seconds, rounds = (1.0, 1) if report.quick else (5.0, ROUNDS)
    report.settings = {
        "client": client_name(),
        "connections": CONNECTIONS,
        "batch": BATCH,
        "batch_connections": BATCH_CONNECTIONS,
        "seconds_a_round": seconds,
        "rounds": rounds,
    }
    path = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT), str(ROOT / "platform")])
    settings = {"DJANGO_SETTINGS_MODULE": "bare_settings", "PYTHONPATH": path}
    with running_platform(settings) as running:
        measure(report, running, seconds, rounds)
    ratio = report.compare("single send / bare view", "single send", "bare view")
    report.at_least("single send, share of the bare view", ratio, 0.7)
    messages = report.figures["batch send"].median
    report.at_least("batch send, messages/s", messages, 60_000)


def measure(report: Report, running: Running, seconds: float, rounds: int) -> None:
    """Put the load on, in turns."""
    headers = {
        "Authorization": f"Bearer {running.api_key}",
        "Content-Type": "application/json",
    }
    single = json.dumps(MESSAGE).encode()
    batch = json.dumps({"messages": [MESSAGE] * BATCH}).encode()
    topic = f"{running.base_url}/api/v1/topics/orders/messages"
    asked = {
        "bare view": (Request(f"{running.base_url}/api/v1/bare", single, headers), CONNECTIONS, 1),
        "single send": (Request(topic, single, headers), CONNECTIONS, 1),
        "batch send": (Request(f"{topic}/batch", batch, headers), BATCH_CONNECTIONS, BATCH),
    }
    results: dict[str, list[float]] = {name: [] for name in asked}
    for request, connections, _ in asked.values():
        put_load(request, connections=connections, seconds=1.0)
    for _ in range(rounds):
        for name, (request, connections, size) in asked.items():
            load = put_load(request, connections=connections, seconds=seconds)
            results[name].append(load.requests_per_second * size)
            if load.failed:
                report.notes.append(f"{name}: {load.failed} requests failed")
    for name, values in results.items():
        unit = "messages/s" if name == "batch send" else "requests/s"
        report.add(name, unit, values)


if __name__ == "__main__":
    run("rest", main, __doc__)
