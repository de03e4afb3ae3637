"""What the platform costs while nothing happens: processor time and memory of all processes."""

import time

from measuring import Report, run
from platforms import running_platform
from processes import command_of, cpu_seconds, family, memory_of

SETTLE_S = 10


def main(report: Report) -> None:
    """Wait until start-up is over, then look at the clock and at the processes, twice."""
    window_s = 5 if report.quick else 60
    settle_s = 1 if report.quick else SETTLE_S
    report.settings = {"window_s": window_s, "settle_s": settle_s}
    with running_platform() as running:
        time.sleep(settle_s)
        members = family(running.process.pid)
        before = {pid: cpu_seconds(pid) for pid in members}
        began = time.perf_counter()
        time.sleep(window_s)
        elapsed = time.perf_counter() - began
        used = {pid: cpu_seconds(pid) - before[pid] for pid in members}
        memory = {pid: memory_of(pid) for pid in members}
        report.settings["processes"] = [
            {
                "command": command_of(pid),
                "cpu_percent": round(used[pid] / elapsed * 100, 2),
                "own_mb": round(memory[pid].own_mb, 1),
                "file_mb": round(memory[pid].file_mb, 1),
            }
            for pid in members
        ]
    cpu_percent = sum(used.values()) / elapsed * 100
    own_mb = sum(each.own_mb for each in memory.values())
    report.add("processor time", "% of one core", [cpu_percent], lower=True)
    report.add("own memory", "MB", [own_mb], lower=True)
    report.at_most("idle, % of one core", cpu_percent, 3.0)
    report.at_most("idle, MB of own memory", own_mb, 600.0)


if __name__ == "__main__":
    run("idle", main, __doc__)
