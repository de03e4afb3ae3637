"""Keeping partials: bringing them up to the log's end, checking them against it, merging them.

The caller holds the reports' lock. What computes the facts of a range is given in (`Compute`), so
nothing here knows Spark. Files are written and synced before the manifest names them; what it does
not name is left over from a crash and is removed at the next start.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Final, Protocol

from analytics.log.extent import Extent, SegmentRemoved, find_extent, first_store_ms
from analytics.partials.manifest import NAME, Gap, Manifest, Partial
from queues.store.crc import crc32
from queues.store.disk import Disk

#: A partial covers so many bytes of the log at most: what a driver merges at once is bounded.
RANGE_BYTES_MAX: Final = 4 << 30
#: Partials are merged while the result has no more rows than this.
ROWS_MAX: Final = 4_000_000
_DAY_MS: Final = 86_400_000
#: Retention may go by again and again while a range is read; then something else is wrong.
_ROUNDS_MAX: Final = 5


class Facts(Protocol):
    """The facts of a range, and what was met in it."""

    records: int
    damaged: int
    damages: list[tuple[int, str]]
    last_offset: int
    last_size: int
    last_store_ms: int
    first_store_ms: int

    @property
    def rows(self) -> int:
        """How many rows it has."""

    def write(self, path: Path) -> None:
        """Write them as Parquet."""


#: Computes the facts of the log's bytes in a range; raises `SegmentRemoved`.
Compute = Callable[[int, int], Facts]
#: Sums the facts of files up into one file and returns its rows.
Merge = Callable[[list[Path], Path], int]
Tell = Callable[[int, int], None]


@dataclass(slots=True)
class Keeper:
    """The partials of one log."""

    #: The store's root directory.
    root: Path
    #: Where the partials of all logs lie.
    directory: Path
    compute: Compute
    merge: Merge
    #: Told how many bytes of how many are read.
    tell: Tell = lambda _done, _total: None

    def bring_up_to_date(self, end: int | None = None) -> Manifest:
        """Read what is new, up to `end` or the log's readable end; returns what there is then."""
        extent = find_extent(self.root)
        home = home_of(self.directory, extent)
        Disk().make_dirs(home)
        manifest = self._still_true(Manifest.load(home, extent.store_id), extent)
        self._tidy(home, manifest)
        rounds = 0
        while rounds < _ROUNDS_MAX:
            try:
                manifest = self._read_new(home, manifest, end)
                break
            except SegmentRemoved:
                rounds += 1  # The next look at the log finds the gap.
                manifest = Manifest.load(home, extent.store_id)
        else:
            raise SegmentRemoved(manifest.end or 0)
        return self._merged(home, manifest, find_extent(self.root))

    def _read_new(self, home: Path, manifest: Manifest, until: int | None) -> Manifest:
        extent = find_extent(self.root)
        begin = manifest.end or 0
        if begin < extent.start:
            manifest = manifest.with_gap(self._gap(manifest, extent, begin))
            manifest.save(home)
            begin = extent.start
        end = extent.end if until is None else min(until, extent.end)
        first = begin
        for start, stop in ranges(extent, begin, end):
            self.tell(start - first, end - first)
            manifest = self._add(home, manifest, extent, start, stop)
        self.tell(end - first, end - first)
        return manifest

    def _add(
        self, home: Path, manifest: Manifest, extent: Extent, start: int, stop: int
    ) -> Manifest:
        facts = self.compute(start, stop)
        if not extent.ours:
            if not facts.records:
                return manifest
            stop = facts.last_offset + facts.last_size  # What follows may not be written yet.
        name = f"{start:020d}-{stop:020d}.parquet"
        facts.write(home / name)
        found = Partial(
            name, start, stop, facts.records, facts.damaged,
            [list(one) for one in facts.damages],
            facts.last_offset, facts.last_size,
            crc_of(extent, facts.last_offset, facts.last_size) or 0,
            facts.first_store_ms or manifest.last_store_ms or 0,
            facts.last_store_ms or manifest.last_store_ms or 0, facts.rows,
        )  # fmt: skip
        manifest = manifest.with_partial(found)
        manifest.save(home)
        return manifest

    @staticmethod
    def _gap(manifest: Manifest, extent: Extent, begin: int) -> Gap:
        before_ms = first_store_ms(extent.segments[0]) if extent.segments else None
        return Gap(begin, extent.start, manifest.last_store_ms, before_ms)

    def _still_true(self, manifest: Manifest, extent: Extent) -> Manifest:
        """Without the ranges from the first on with which the log disagrees."""
        if manifest.store_id != extent.store_id:
            return Manifest(extent.store_id)
        for partial in manifest.partials:
            if partial.last_offset < extent.start:
                continue  # The log no longer has it; nobody can disagree.
            if crc_of(extent, partial.last_offset, partial.last_size) != partial.last_crc:
                return manifest.without_from(partial.start)
        return manifest

    def _tidy(self, home: Path, manifest: Manifest) -> None:
        named = {NAME, *(one.file for one in manifest.partials)}
        disk = Disk()
        for name in disk.list_names(home):
            if name not in named:
                disk.unlink(home / name)

    def _merged(self, home: Path, manifest: Manifest, extent: Extent) -> Manifest:
        """With adjacent ranges merged: of a sealed segment, and of a day that is over."""
        newest_ms = manifest.last_store_ms or 0
        for run in adjacent_runs(manifest, extent, newest_ms):
            name = f"{run[0].start:020d}-{run[-1].end:020d}.parquet"
            rows = self.merge([home / one.file for one in run], home / name)
            merged = replace(
                run[-1],
                file=name,
                start=run[0].start,
                records=sum(one.records for one in run),
                damaged=sum(one.damaged for one in run),
                damages=[told for one in run for told in one.damages][:20],
                first_store_ms=run[0].first_store_ms,
                rows=rows,
            )
            manifest = manifest.with_merged(run, merged)
            manifest.save(home)
        self._tidy(home, manifest)
        return manifest


def adjacent_runs(manifest: Manifest, extent: Extent, newest_ms: int) -> list[tuple[Partial, ...]]:
    """The runs of partials, two or more, that are to become one each."""
    today = newest_ms // _DAY_MS
    open_base = extent.segments[-1].base if extent.segments else 0

    def key(partial: Partial) -> tuple[str, int]:
        day = partial.last_store_ms // _DAY_MS
        if day < today and partial.end <= open_base:
            return "day", day
        if partial.end <= open_base:
            bases = [one.base for one in extent.segments if one.base < partial.end]
            return "segment", max(bases, default=-1)
        return "alone", partial.start

    runs: list[tuple[Partial, ...]] = []
    for _, group in groupby(manifest.partials, key):
        run: list[Partial] = []
        for one in group:
            fits = sum(each.rows for each in run) + one.rows <= ROWS_MAX
            if run and (run[-1].end != one.start or not fits):
                runs.append(tuple(run))
                run = []
            run.append(one)
        runs.append(tuple(run))
    return [run for run in runs if len(run) > 1]


def home_of(directory: Path, extent: Extent) -> Path:
    """Where the partials of one log lie: by the store's number, or by a broker's directory."""
    if extent.ours:
        return directory / f"store-{extent.store_id:x}"
    return directory / f"broker-{crc32(str(extent.root.resolve()).encode()):08x}"


def ranges(extent: Extent, start: int, end: int) -> list[tuple[int, int]]:
    """[start, end) in ranges of bounded length; all but the last end where a segment ends."""
    found: list[tuple[int, int]] = []
    bounds = [one for one in extent.segment_ends if start < one < end]
    position = start
    for number, bound in enumerate(bounds):
        following = bounds[number + 1] if number + 1 < len(bounds) else end
        if following - position > RANGE_BYTES_MAX:
            found.append((position, bound))
            position = bound
    if position < end:
        found.append((position, end))
    return found


def crc_of(extent: Extent, offset: int, size: int) -> int | None:
    """The CRC-32 of a record's bytes; None if the log does not reach so far."""
    for segment in extent.segments:
        if segment.base <= offset and offset + size <= min(segment.base + segment.size, extent.end):
            try:
                file = Disk().open(segment.path, write=False)
            except FileNotFoundError:
                return None
            try:
                return crc32(file.pread(size, offset - segment.base))
            finally:
                file.close()
    return None
