"""Lateness at the hand-over, with the platform's own configuration and its own processes.

Lateness is the delivered record's STORETIMESTAMP less its `PD_DUE`, read from the log afterwards.
Half of the messages at 1,000 and at 10,000 a second are timed, at random milliseconds; half wait
in level 2 (5 s) and are sent at an even pace, so appending and handing over meet. The burst is
timed alone: all of it is due within one second, and its time is from the first due millisecond to
the last hand-over.

After each load its peer gets the same load: a Redis sorted set with a worker that polls it
(`polling.py`), which keeps nothing on a disk. Its tail says how much of ours is the machine's.
"""

import time

import polling
from measuring import Report, quantiles, run
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

LEVEL, LEVEL_MS = 2, 5_000
GRACE_S = 60


def main(report: Report) -> None:
    """The two steady loads, then the burst."""
    seconds, burst = (3, 20_000) if report.quick else (20, 1_000_000)
    report.settings = {"seconds_a_load": seconds, "burst": burst}
    with running_platform() as running, opened(running.data_dir) as store:
        for topic in ("timed-1000", "levels-1000", "timed-10000", "levels-10000", "burst"):
            make_topic(running, topic, queues=QUEUES)
        p50, p99 = steady(report, store, per_second=1_000, seconds=seconds)
        report.at_most("1,000 due a second, p50 ms", p50, 1.0)
        report.at_most("1,000 due a second, p99 ms", p99, 3.0)
        _, p99 = steady(report, store, per_second=10_000, seconds=seconds)
        report.at_most("10,000 due a second, p99 ms", p99, 20.0)
        took_s = at_once(report, store, burst)
        report.at_most(f"{burst:,} due in one second, all handed over, s", took_s, 6.0, aim=4.0)


def steady(report: Report, store: Store, *, per_second: int, seconds: int) -> tuple[float, float]:
    """Levels and timed together at a steady rate; p50 and p99 of both."""
    half = per_second // 2
    timed, levels = f"timed-{per_second}", f"levels-{per_second}"
    send_timed(store, timed, half * seconds, from_ms=now_ms() + LEVEL_MS, span_ms=seconds * 1000)
    send_level_paced(store, levels, level=LEVEL, per_second=half, seconds=seconds)
    await_delivered(store, timed, half * seconds, within_s=GRACE_S)
    time.sleep(LEVEL_MS / 1000 + 1)
    both: list[float] = []
    for kind, topic in (("timed", timed), ("levels", levels)):
        values = [float(value) for value in delivered(store, topic).lateness_ms]
        assert min(values) >= 0, "a message was early"
        both += values
        add_quantiles(report, f"{per_second:,}/s {kind}", values)
    figures = add_quantiles(report, f"{per_second:,}/s", both)
    peer = polling.steady(per_second=per_second, seconds=seconds, delay_ms=LEVEL_MS)
    add_quantiles(report, f"{per_second:,}/s polled Redis", peer)
    return figures["p50"], figures["p99"]


def at_once(report: Report, store: Store, count: int) -> float:
    """Everything due within one second; seconds from the first due to the last hand-over."""
    from_ms = now_ms() + 5_000 + count // 40
    send_timed(store, "burst", count, from_ms=from_ms, span_ms=1000)
    left_s = from_ms / 1000 - time.time()
    report.settings["burst_filled_before_due_s"] = round(left_s, 1)
    done = await_delivered(store, "burst", count, within_s=max(left_s, 0) + GRACE_S)
    if done < count:
        report.notes.append(f"burst: {done:,} of {count:,} handed over")
    came = delivered(store, "burst")
    add_quantiles(report, "burst", [float(value) for value in came.lateness_ms])
    took_s = float(came.delivered_ms.max() - from_ms) / 1000
    report.add("burst, first due to last hand-over", "s", [took_s], lower=True)
    report.add("burst, polled Redis", "s", [polling.at_once(count)], lower=True)
    return took_s


def add_quantiles(report: Report, name: str, values: list[float]) -> dict[str, float]:
    """One figure a quantile."""
    found = quantiles(values)
    for quantile, value in found.items():
        report.add(f"{name} {quantile}", "ms", [value], lower=True)
    report.add(f"{name} messages", "messages", [len(values)])
    return found


if __name__ == "__main__":
    run("lateness", main, __doc__)
