"""Processes: who belongs to a running platform, their own memory, and their processor time.

A process's *own* memory is what it would give back by ending: anonymous pages and its share of
shared memory. Mapped file pages are the page cache's; they are counted apart.
"""

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one process, in MB (10**6 bytes)."""

    own_mb: float
    file_mb: float


def family(pid: int) -> list[int]:
    """A process and all that descend from it, in the order of their ids."""
    parents: dict[int, int] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                parents[int(entry.name)] = int(fields[1])
    members = {pid}
    grown = True
    while grown:
        more = {child for child, parent in parents.items() if parent in members} - members
        members |= more
        grown = bool(more)
    return sorted(members)


def command_of(pid: int) -> str:
    """A process's command line, shortened."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace").rsplit("/", 1)[-1] for word in words if word)[:80]


def memory_of(pid: int) -> Memory:
    """What `smaps_rollup` says; nothing for a process that is gone."""
    kib: dict[str, int] = {}
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return Memory(0.0, 0.0)
    for line in lines:
        name, value = line.split(":", 1)
        kib[name] = int(value.split()[0])
    own = kib["Pss_Anon"] + kib["Pss_Shmem"]
    return Memory(own * 1024 / 1e6, kib["Pss_File"] * 1024 / 1e6)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its children that have ended."""
    fields = _stat(pid)
    return sum(int(value) for value in fields[11:15]) / TICKS_A_SECOND if fields else 0.0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, …; empty for one that is gone."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return []
    return text.rsplit(")", 1)[1].split()
