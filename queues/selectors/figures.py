"""Figures: what Prometheus reads, from the store's counters and the loops' pages; no scan."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from queues import wires

#: The store's counters, in the words of their help line.
_HELP = {
    "sent": "Messages sent without delay.",
    "sent_level": "Messages sent into a delay level.",
    "sent_timed": "Messages sent for a moment.",
    "handed_over": "Messages handed over to their topics.",
    "cancelled": "Messages cancelled.",
    "restored": "Cancelled messages that wait again.",
    "moved": "Messages moved to another time.",
    "parked": "Messages that could not be handed over.",
    "renewed": "Waiting records written again before their segment goes.",
    "expired": "Ready messages removed by retention before a group received them.",
    "damaged": "Records found damaged.",
    "repaired": "Half-done writes repaired.",
    "sends_refused": "Sends refused for lack of space.",
    "bytes_written": "Bytes appended to the log.",
    "syncs": "Flushes of the log.",
    "lateness_ms_sum": "Lateness of all hand-overs together, in milliseconds.",
    "late_over_100ms": "Hand-overs more than 100 ms late.",
    "clock_back": "Steps back of the wall clock.",
    "clock_forward": "Steps forward of the wall clock.",
    "dropped": "Messages that a broadcasting group's consumer gave up.",
    "consumers_forgotten": "Consumers of broadcasting groups that were not seen for 7 days.",
    "segments_removed": "Log segments removed by retention.",
    "retried": "Failed attempts that are tried again.",
    "dead": "Messages that became dead letters.",
    "redriven": "Dead letters that were driven again.",
    "traces": "Records of receives and acks, for reports.",
    "traces_lost": "Records of receives and acks that could not be written.",
}


class StoreCollector(Collector):
    """Reads the figures when they are asked for."""

    def collect(self) -> Iterator[Metric]:
        wiring = wires.wiring()
        store = wiring.get_store()
        for name, value in store.counters().items():
            yield CounterMetricFamily(
                f"postdate_{name}", _HELP.get(name, name.replace("_", " ")), value=value
            )
        health = store.health()
        yield _gauge("writable", "1 while sends are taken.", int(health["writable"]))
        yield _gauge("disk_free_bytes", "Free bytes of the store's disk.", health["free_bytes"])
        yield _gauge("log_bytes", "Bytes of the log that are kept.", health["log_bytes"])
        yield _gauge("unflushed_bytes", "Bytes not yet synced.", health["unflushed_bytes"])
        held = GaugeMetricFamily(
            "postdate_loop_held", "1 while a process runs the loop.", labels=["loop"]
        )
        behind = GaugeMetricFamily(
            "postdate_loop_behind_seconds",
            "How far the loop is behind what is due.",
            labels=["loop"],
        )
        waiting, lag = _stage_gauges()
        for loop in wiring.get_schedule().loops():
            for stage in loop.detail.get("stages", ()):
                if stage["messages"] is not None:
                    waiting.add_metric([stage["stage"]], stage["messages"])
                lag.add_metric([stage["stage"]], stage["lag_ms"] / 1000)
            held.add_metric([loop.name], int(loop.holder is not None and not loop.stuck))
            behind.add_metric([loop.name], loop.behind_ms / 1000)
        yield from (held, behind, waiting, lag)


def _stage_gauges() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    """What waits in front of each stage of the timer, and for how long."""
    waiting = GaugeMetricFamily(
        "postdate_timer_stage_messages",
        "Messages in front of a stage of the timer.",
        labels=["stage"],
    )
    lag = GaugeMetricFamily(
        "postdate_timer_stage_lag_seconds",
        "How long the first of them has waited, or has been due.",
        labels=["stage"],
    )
    return waiting, lag


def metrics_text() -> bytes:
    """All figures in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StoreCollector())
    return generate_latest(registry)


def _gauge(name: str, help_line: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"postdate_{name}", help_line, value=value)
