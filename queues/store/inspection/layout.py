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

from queues.store.control import CONTROL_BYTES, Control, Word
from queues.store.disk import UNFINISHED, Disk, Mapped
from queues.store.errors import NotAStore, WrongFileSize
from queues.store.inspection.findings import Report

#: How files end that are being written and will take another's place: ours, and a broker's.
_UNFINISHED: Final = (UNFINISHED, ".tmp")

#: Directories with a subdirectory for each topic, and below it for each queue.
_BY_QUEUE: Final = ("consumequeue", "postdate/schedule")
_DIRECTORIES: Final = (*_BY_QUEUE, "index", "timerlog", "config")


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
    #: Log offset at which our log must begin; None where nothing says so.
    first: int | None = None

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

    @property
    def still_closed(self) -> bool:
        """Whether it was left in order, and nothing has opened it since it was found."""
        return self.closed and not self.disk.exists(self.root / "abort")

    def map(self, path: Path) -> Mapped | None:
        """Map a file for reading; None if it is missing, empty or a directory."""
        if self.disk.is_directory(path):
            return None
        try:
            return self.disk.map(path, write=False) if self.disk.size(path) else None
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_file(self, path: Path) -> bool:
        """Whether a path names something that is no directory."""
        try:
            return self.disk.exists(path) and not self.disk.is_directory(path)
        except NotADirectoryError:
            return False

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

    def check_file(self, path: Path, report: Report) -> None:
        """Take down a directory that stands where a file should."""
        if self.disk.is_directory(path):
            report.add(path, None, "it is a directory, not a file")


def check_directories(layout: Layout, report: Report) -> None:
    """Take down files that stand where directories should."""
    for name in _DIRECTORIES:
        _check_directory(layout, layout.root / name, report)
    for tree in (layout.root / name for name in _BY_QUEUE):
        for topic in layout.names(tree):
            _check_directory(layout, tree / topic, report)
            for queue in layout.number_names(tree / topic):
                _check_directory(layout, tree / topic / queue, report)


def _check_directory(layout: Layout, path: Path, report: Report) -> None:
    if layout.is_file(path):
        report.add(path, None, "it is a file, not a directory")


def is_number(name: str) -> bool:
    """Tell whether a file is named by a number, as RocketMQ names files of data."""
    return name.isascii() and name.isdigit()


def find_layout(disk: Disk, root: Path) -> Layout:
    """Return what lies in the directory; raise ``NotAStore`` if it is none."""
    log = root / "commitlog"
    try:
        names = disk.list_names(log)
    except OSError as error:
        raise NotAStore(path=root, reason=error.strerror) from error
    if not names and not disk.exists(log):
        raise NotAStore(path=root)
    control = root / "postdate" / "control"
    ours = disk.exists(control)
    if ours and disk.is_directory(control):
        raise WrongFileSize(path=control, size_bytes=0, expected_bytes=CONTROL_BYTES)
    words = Control.read(disk, control).words if ours else None
    # Segments are made before this end of the log moves, and removed after its begin did.
    committed = None if words is None else words[Word.COMMITTED]
    names = [name for name in disk.list_names(log) if is_number(name)]
    segments = tuple(
        Segment(int(name), log / name, _size(disk, log / name)) for name in sorted(names, key=int)
    )
    first = None if words is None else words[Word.LOG_MIN]
    if first is not None:  # A removal that was stopped leaves what is no part of the log any more.
        segments = tuple(one for one in segments if one.base >= first) or segments
    closed = not disk.exists(root / "abort")
    return Layout(disk, root, segments, ours, closed, committed, first)


def _size(disk: Disk, path: Path) -> int:
    """The length of a segment; 0 of a directory in its place."""
    return 0 if disk.is_directory(path) else disk.size(path)


def check_segments(layout: Layout, report: Report) -> None:
    """Take down segments of a wrong length, and those missing: between others, first or last."""
    wanted = layout.segment_bytes
    for number, segment in enumerate(layout.segments):
        last = number == len(layout.segments) - 1
        layout.check_file(segment.path, report)
        if segment.size != wanted and not (last and segment.size == 0):
            reason = f"the segment has {segment.size} bytes, others have {wanted}"
            report.add(segment.path, None, reason)
        if not last and layout.segments[number + 1].base != segment.base + wanted:
            report.add(segment.path, None, "the segment that should follow it is missing")
    if layout.first is not None and layout.committed is not None:
        _check_ends(layout, layout.first, layout.committed, report)


def _check_ends(layout: Layout, first: int, committed: int, report: Report) -> None:
    """Take down what is missing at the ends of the log of which our control page tells."""
    if first == committed:  # An empty log need not have a segment.
        return
    log = layout.root / "commitlog"
    if not layout.segments or layout.log_min != first:
        report.add(log / f"{first:020d}", None, "the segment with which the log begins is missing")
        return
    last = layout.segments[-1]
    end = last.base + last.size
    if end < committed:
        whole = last.size == layout.segment_bytes
        path = log / f"{end:020d}" if last.size and whole else last.path
        told = "the segment is missing" if path != last.path else f"the segment ends at {end}"
        report.add(path, None, f"{told}, but the log is committed up to {committed}")
