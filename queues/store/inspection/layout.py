"""What lies where in a store directory, and how far it may be read.

A directory is a store if it holds ``commitlog``. It is ours if ``postdate/control`` is there: then
nothing is read beyond the position up to which the log is committed. Of a broker's store everything
is read; while its ``abort`` file is there, it runs or was killed, and an unfinished record at the
end of the log, and records that no ConsumeQueue knows yet, are its ordinary state.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from queues.store.control import Control, Word
from queues.store.disk import UNFINISHED, Disk, Mapped
from queues.store.errors import NotAStore
from queues.store.inspection.findings import Report

#: How files end that are being written and will take another's place: ours, and a broker's.
_UNFINISHED: Final = (UNFINISHED, ".tmp")


@dataclass(frozen=True, slots=True)
class Segment:
    """One file of the CommitLog."""

    #: Log offset of its first byte.
    base: int
    path: Path
    #: Its length in bytes.
    size: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A store directory as it was found."""

    disk: Disk
    root: Path
    #: The files of the CommitLog, in order.
    segments: tuple[Segment, ...]
    #: Whether this store wrote it, and not a broker.
    ours: bool
    #: Whether it was left in order: nothing is running and nothing is to be recovered.
    closed: bool
    #: Log offset from which on nothing may be read; None to read all.
    committed: int | None

    @property
    def log_min(self) -> int:
        """Where the log begins."""
        return self.segments[0].base if self.segments else 0

    @property
    def segment_bytes(self) -> int:
        """The length of a segment; 0 when there is none to learn it from."""
        bases = [segment.base for segment in self.segments]
        steps = [after - before for before, after in itertools.pairwise(bases)]
        return min(steps) if steps else max((one.size for one in self.segments), default=0)

    @property
    def complete(self) -> bool:
        """Whether everything derived is up to the end of what is read."""
        return self.closed or self.committed is not None

    def map(self, path: Path) -> Mapped | None:
        """Map a file for reading; None if it is missing or empty."""
        try:
            return self.disk.map(path, write=False) if self.disk.size(path) else None
        except FileNotFoundError:
            return None

    def names(self, path: Path) -> list[str]:
        """Return the names of whole files in a directory; none when it is missing or a file."""
        try:
            names = self.disk.list_names(path)
        except NotADirectoryError:
            return []
        return [name for name in names if not name.endswith(_UNFINISHED)]

    def number_names(self, path: Path) -> list[str]:
        """Return the names in a directory that are numbers, in the order of these."""
        return sorted((name for name in self.names(path) if is_number(name)), key=int)


def is_number(name: str) -> bool:
    """Tell whether a file is named by a number, as RocketMQ names files of data."""
    return name.isascii() and name.isdigit()


def find_layout(disk: Disk, root: Path) -> Layout:
    """Return what lies in the directory; raise ``NotAStore`` if it is none."""
    log = root / "commitlog"
    try:
        names = [name for name in disk.list_names(log) if is_number(name)]
    except NotADirectoryError as error:
        raise NotAStore(path=root) from error
    if not names and not disk.exists(log):
        raise NotAStore(path=root)
    segments = tuple(
        Segment(int(name), log / name, disk.size(log / name)) for name in sorted(names, key=int)
    )
    control = root / "postdate" / "control"
    ours = disk.exists(control)
    words = Control.read(disk, control).words if ours else None
    committed = None if words is None else words[Word.COMMITTED]
    if words is not None:  # A removal that was stopped leaves what is no part of the log any more.
        first = words[Word.LOG_MIN]
        segments = tuple(one for one in segments if one.base >= first) or segments
    closed = not disk.exists(root / "abort")
    return Layout(disk, root, segments, ours, closed, committed)


def check_segments(layout: Layout, report: Report) -> None:
    """Take down segments of a wrong length and gaps between segments."""
    wanted = layout.segment_bytes
    for number, segment in enumerate(layout.segments):
        last = number == len(layout.segments) - 1
        if segment.size != wanted and not (last and segment.size == 0):
            reason = f"the segment has {segment.size} bytes, others have {wanted}"
            report.add(segment.path, None, reason)
        if not last and layout.segments[number + 1].base != segment.base + wanted:
            report.add(segment.path, None, "the segment that should follow it is missing")
