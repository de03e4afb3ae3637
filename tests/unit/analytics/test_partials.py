"""Partials: ranges without overlap, true to the log, whatever dies on the way."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analytics.log.extent import SegmentRemoved, find_extent
from analytics.partials.keeping import Keeper, home_of, ranges
from analytics.partials.manifest import NAME, Manifest
from queues.store import Sizes, StoreSettings
from tests.support.folding import counts, fold
from tests.support.loglines import SMALL, LivedStore

DAY_MS = 86_400_000


class Read:
    """The facts of a range, kept as a text."""

    def __init__(self, facts: Any, seen: Any) -> None:
        self.facts, self._seen = facts, seen
        self.rows = len(facts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)

    def write(self, path: Path) -> None:
        path.write_text(repr({(tuple(s), b): sums for (s, b), sums in self.facts.items()}))


def read_back(path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = eval(path.read_text())  # noqa: S307 (written a moment ago by this test)
    return found


def merge(paths: list[Path], target: Path) -> int:
    summed: dict[Any, Any] = {}
    for path in paths:
        for key, (count, total, longest) in read_back(path).items():
            before = summed.get(key, (0, 0, 0))
            summed[key] = (before[0] + count, before[1] + total, max(before[2], longest))
    target.write_text(repr(summed))
    return len(summed)


def keeper_of(lived: LivedStore, place: Path, **more: Any) -> Keeper:
    def compute(start: int, end: int) -> Any:
        return Read(*fold(lived.store.root, start, end))

    return Keeper(lived.store.root, place, **{"compute": compute, "merge": merge, **more})


def all_rows(lived: LivedStore, place: Path, manifest: Manifest) -> int:
    home = home_of(place, find_extent(lived.store.root))
    return sum(sums[0] for one in manifest.partials for sums in read_back(home / one.file).values())


def life(lived: LivedStore, messages: int = 5) -> None:
    for _ in range(messages):
        lived.send("orders", level=1)
    lived.after(1_005).flush()


def test_each_run_reads_what_is_new_and_only_that(lived: LivedStore, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def compute(start: int, end: int) -> Any:
        told.append((start, end))
        return Read(*fold(lived.store.root, start, end))

    keeper = keeper_of(lived, tmp_path, compute=compute)
    life(lived)
    first = keeper.bring_up_to_date()
    life(lived)
    second = keeper.bring_up_to_date()
    keeper.bring_up_to_date()
    assert told == [(0, first.end), (first.end, second.end)]
    assert second.end == lived.store.flushed
    assert [one.records for one in second.partials] == [10, 10]
    assert all_rows(lived, tmp_path, second) == sum(counts(fold(lived.store.root)[0]).values())


def test_what_no_manifest_names_is_removed(lived: LivedStore, tmp_path: Path) -> None:
    life(lived)
    keeper = keeper_of(lived, tmp_path)
    home = home_of(tmp_path, find_extent(lived.store.root))
    home.mkdir(parents=True)
    (home / "half.parquet.new").write_text("half")
    (home / "whole-but-unnamed.parquet").write_text("{}")
    manifest = keeper.bring_up_to_date()
    assert sorted(path.name for path in home.iterdir()) == sorted([NAME, manifest.partials[0].file])


def test_a_crash_before_the_manifest_leaves_nothing_counted_twice(
    lived: LivedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life(lived)
    keeper = keeper_of(lived, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Manifest, "save", _die)
        with pytest.raises(KeyboardInterrupt):
            keeper.bring_up_to_date()
    manifest = keeper.bring_up_to_date()
    assert len(manifest.partials) == 1
    assert all_rows(lived, tmp_path, manifest) == sum(counts(fold(lived.store.root)[0]).values())


def _die(*_: Any) -> None:
    raise KeyboardInterrupt


def test_what_retention_took_is_a_gap_and_the_next_run_goes_on(tmp_path: Path) -> None:
    lived = LivedStore.make(tmp_path / "store", several_segments())
    for _ in range(4):
        life(lived, 60)
    keeper = keeper_of(lived, tmp_path / "partials")
    before = keeper.bring_up_to_date(end=find_extent(lived.store.root).segment_ends[0])
    for _ in range(6):
        life(lived, 60)
    first = sorted((lived.store.root / "commitlog").iterdir())
    for path in first[:3]:
        path.unlink()
    manifest = keeper.bring_up_to_date()
    (gap,) = manifest.gaps
    assert (gap.start, gap.end) == (before.end, int(first[3].name))
    assert gap.after_ms == before.partials[-1].last_store_ms
    assert gap.before_ms is not None
    assert gap.before_ms >= gap.after_ms
    assert manifest.partials[-1].start == gap.end
    assert manifest.end == lived.store.flushed
    lived.close()


def test_retention_in_the_middle_of_a_run_is_a_gap_too(tmp_path: Path) -> None:
    lived = LivedStore.make(tmp_path / "store", several_segments())
    for _ in range(6):
        life(lived, 60)
    taken: list[Path] = []

    def compute(start: int, end: int) -> Any:
        if not taken:
            taken.append(min((lived.store.root / "commitlog").iterdir()))
            taken[0].unlink()
            raise SegmentRemoved(start)
        return Read(*fold(lived.store.root, start, end))

    manifest = keeper_of(lived, tmp_path / "partials", compute=compute).bring_up_to_date()
    assert [(one.start, one.end) for one in manifest.gaps] == [(0, manifest.partials[0].start)]
    assert manifest.end == lived.store.flushed
    lived.close()


def test_where_the_log_disagrees_its_ranges_are_read_again(
    lived: LivedStore, tmp_path: Path
) -> None:
    keeper = keeper_of(lived, tmp_path)
    life(lived)
    keeper.bring_up_to_date()
    life(lived)
    manifest = keeper.bring_up_to_date()
    last = manifest.partials[1]
    with (lived.store.root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(last.last_offset + 95)
        file.write(b"\xfe")
    again = keeper.bring_up_to_date()
    assert again.partials[0] == manifest.partials[0]
    assert (again.partials[1].records, again.partials[1].damaged) == (last.records - 1, 1)


def test_another_store_in_the_same_place_begins_anew(lived: LivedStore, tmp_path: Path) -> None:
    life(lived)
    keeper_of(lived, tmp_path).bring_up_to_date()
    other = LivedStore.make(tmp_path / "other")
    life(other)
    manifest = keeper_of(other, tmp_path).bring_up_to_date()
    assert [one.start for one in manifest.partials] == [0]
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("store-")]) == 2
    other.close()


def test_ranges_of_a_sealed_segment_become_one(tmp_path: Path) -> None:
    lived = LivedStore.make(tmp_path / "store", several_segments())
    keeper = keeper_of(lived, tmp_path / "partials")
    while len(find_extent(lived.store.root).segments) < 3:
        life(lived, 20)
        manifest = keeper.bring_up_to_date()
    whole = sum(counts(fold(lived.store.root)[0]).values())
    assert all_rows(lived, tmp_path / "partials", manifest) == whole
    sealed = [
        one
        for one in manifest.partials
        if one.end <= find_extent(lived.store.root).segments[-1].base
    ]
    assert len(sealed) <= 2
    starts = [one.start for one in manifest.partials]
    assert starts == sorted(starts)
    assert all(a.end == b.start for a, b in itertools.pairwise(manifest.partials))
    lived.close()


def test_the_ranges_of_a_day_that_is_over_become_one(tmp_path: Path) -> None:
    lived = LivedStore.make(tmp_path / "store", several_segments())
    keeper = keeper_of(lived, tmp_path / "partials")
    for _ in range(3):
        life(lived, 400)
        keeper.bring_up_to_date()
    lived.clock.advance(DAY_MS)
    life(lived, 400)
    manifest = keeper.bring_up_to_date()
    assert len(manifest.partials) <= 3
    assert all_rows(lived, tmp_path / "partials", manifest) == sum(
        counts(fold(lived.store.root)[0]).values()
    )
    lived.close()


def test_a_broker_that_runs_is_read_up_to_its_last_whole_record(
    broker_store: Callable[[str], Path], tmp_path: Path
) -> None:
    root = broker_store("crashed")

    def compute(start: int, end: int) -> Any:
        return Read(*fold(root, start, end))

    keeper = Keeper(root, tmp_path, compute=compute, merge=merge)
    first = keeper.bring_up_to_date()
    assert first.partials[-1].records == 178
    assert keeper.bring_up_to_date() == first


def test_a_long_log_is_read_in_ranges_that_end_with_segments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("analytics.partials.keeping.RANGE_BYTES_MAX", 100_000)
    long = LivedStore.make(tmp_path / "long", several_segments())
    for _ in range(12):
        life(long, 60)
    extent = find_extent(long.store.root)
    found = ranges(extent, extent.start, extent.end)
    assert len(found) > 1
    assert found[0][0] == 0
    assert found[-1][1] == extent.end
    assert all(end in extent.segment_ends for _, end in found[:-1])
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))
    long.close()


def several_segments() -> StoreSettings:
    names = SMALL.sizes.__dataclass_fields__
    sizes = {name: getattr(SMALL.sizes, name) for name in names} | {"segment_bytes": 1 << 16}
    return StoreSettings(sizes=Sizes(**sizes), ballast_bytes=1 << 16, retention_ms=99 * DAY_MS)
