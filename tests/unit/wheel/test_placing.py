"""Where a message waits, and how its unit is linked and read back."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.store.disk import Disk
from queues.store.errors import SettingsDiffer
from queues.store.timerunits import BLANK, BLANK_MAGIC, SLOT, whole_units
from scheduler.engine.duelist import DueList, items_of
from scheduler.engine.keys import ROLL_OFFSET_MS, keys_of, offsets_in_slot, queue_offsets
from scheduler.engine.scan import Waiting
from scheduler.wheel.chain import chain
from scheduler.wheel.enqueue import enqueue
from scheduler.wheel.geometry import WheelGeometry
from scheduler.wheel.placement import place
from scheduler.wheel.slotreading import SlotReading
from scheduler.wheel.state import WheelState
from scheduler.wheel.timerlog import TimerLog
from scheduler.wheel.timerwheel import TimerWheel

NOW_MS = 1_700_000_000_000
GEOMETRY = WheelGeometry(1000, 10, 52 * 8 + 16)


def longs(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def new_state(root: Path, geometry: WheelGeometry = GEOMETRY) -> WheelState:
    wheel, log = TimerWheel(Disk(), root, geometry), TimerLog(Disk(), root, geometry)
    return WheelState(
        geometry=geometry, wheel=wheel, log=log, settled_ms=NOW_MS, read_ms=NOW_MS, write_ms=NOW_MS
    )


def waiting(due_ms: np.ndarray, first_offset: int = 0) -> Waiting:
    offsets = np.arange(first_offset, first_offset + len(due_ms), dtype=np.int64)
    return Waiting(offsets, due_ms, offsets * 300, np.full(len(due_ms), 300, dtype=np.int32))


# -- placement --------------------------------------------------------------------------------


def test_a_message_lies_in_its_own_slot_or_the_last_of_the_window_or_the_settled_one() -> None:
    placed = place(
        longs(3500, 7250, 14_500, 15_000, 15_001, 99_000),
        settled_ms=5000,
        read_ms=5000,
        geometry=GEOMETRY,
    )
    assert placed.slots_ms.tolist() == [5000, 7000, 14_000, 14_000, 14_000, 14_000]
    assert placed.rolled.tolist() == [False, False, False, False, True, True]
    assert placed.offsets_in_slot_ms.tolist() == [0, 250, 500, 1000, *[ROLL_OFFSET_MS] * 2]


def test_a_late_message_keeps_its_slot_while_that_is_not_settled() -> None:
    placed = place(longs(2001, 4999), settled_ms=2000, read_ms=6000, geometry=GEOMETRY)
    assert placed.slots_ms.tolist() == [2000, 4000]
    assert placed.offsets_in_slot_ms.tolist() == [1, 999]


@given(
    due_ms=st.integers(1, 10**13),
    settled=st.integers(0, 10**9),
    behind=st.integers(0, 9),
)
def test_no_two_slots_in_use_share_a_place_in_the_file(
    due_ms: int, settled: int, behind: int
) -> None:
    settled_ms = settled * 1000
    read_ms = settled_ms + behind * 1000
    placed = place(longs(due_ms), settled_ms=settled_ms, read_ms=read_ms, geometry=GEOMETRY)
    slot_ms = int(placed.slots_ms[0])
    assert settled_ms <= slot_ms < read_ms + GEOMETRY.window_ms
    assert slot_ms - settled_ms < 2 * GEOMETRY.window_ms


@given(st.integers(0, 131_071), st.integers(0, (1 << 45) - 1))
def test_a_key_gives_back_what_it_was_made_of(inside_ms: int, offset: int) -> None:
    keys = keys_of(longs(inside_ms), longs(offset))
    assert (int(offsets_in_slot(keys)[0]), int(queue_offsets(keys)[0])) == (inside_ms, offset)
    assert 0 <= int(keys[0]) < np.iinfo(np.int64).max


@pytest.mark.parametrize(
    ("precision_ms", "window_slots", "log_bytes"),
    [(0, 10, 100), (100_001, 10, 100), (1000, 3, 100), (1000, 2_000_000, 100), (1000, 10, 60)],
)
def test_sizes_that_the_formats_cannot_hold_are_refused(
    precision_ms: int, window_slots: int, log_bytes: int
) -> None:
    with pytest.raises(SettingsDiffer):
        WheelGeometry(precision_ms, window_slots, log_bytes)


@given(st.integers(0, 10**6), st.integers(1, 50))
def test_unit_numbers_and_positions_lead_to_each_other(first: int, count: int) -> None:
    positions = GEOMETRY.positions(first, count)
    numbers = [GEOMETRY.unit_number(int(position)) for position in positions]
    assert numbers == list(range(first, first + count))
    assert all(GEOMETRY.is_unit_position(int(position)) for position in positions)
    assert not GEOMETRY.is_unit_position(int(positions[0]) + 1)


# -- chaining ---------------------------------------------------------------------------------


def test_a_batch_is_linked_newest_to_oldest_in_each_slot() -> None:
    def slots(times: np.ndarray) -> np.ndarray:
        found = np.zeros(len(times), dtype=SLOT)
        found["last"] = np.where(times == 7, 40, -1)
        return found

    chained = chain(longs(7, 8, 7), longs(0, 52, 104), slots)
    assert chained.previous.tolist() == [40, -1, 0]
    assert chained.slots_ms.tolist() == [7, 8]
    assert chained.first.tolist() == [0, 52]
    assert chained.last.tolist() == [104, 52]
    assert chained.count.tolist() == [2, 1]


def test_a_full_timer_log_file_ends_with_rocketmqs_blank_record(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    enqueue(state, waiting(NOW_MS + longs(*range(1, 20))))
    names = Disk().list_names(tmp_path / "timerlog")
    assert names == ["0" * 20, f"{432:020d}", f"{864:020d}"]
    raw = (tmp_path / "timerlog" / names[0]).read_bytes()
    assert len(raw) == 432
    blank = np.frombuffer(raw, BLANK, offset=8 * 52)[0]
    assert (int(blank["size"]), int(blank["previous"])) == (16, 0)
    assert int(blank["magic"]) == BLANK_MAGIC
    assert whole_units(state.log.read(0, 8)).all()


# -- reading a slot ---------------------------------------------------------------------------


def read_all(reading: SlotReading, units_max: int) -> list[list[int]]:
    """The runs of a slot."""
    runs = []
    while not reading.finished:
        keys = reading.read(units_max)
        if keys is not None:
            runs.append(keys.tolist())
    return runs


@given(
    inside=st.lists(st.integers(1, 1000), min_size=1, max_size=80),
    others=st.integers(0, 40),
    run_keys=st.integers(1, 30),
    units_max=st.integers(1, 40),
)
def test_a_slot_is_read_whole_and_sorted_in_bounded_runs(
    tmp_path_factory: pytest.TempPathFactory,
    inside: list[int],
    others: int,
    run_keys: int,
    units_max: int,
) -> None:
    state = new_state(tmp_path_factory.mktemp("wheel"))
    slot_ms = NOW_MS + 3000
    chance = np.random.default_rng(len(inside))
    due_ms = np.concatenate((slot_ms + longs(*inside), slot_ms + 2000 + np.arange(others)))
    due_ms = due_ms[chance.permutation(len(due_ms))]
    batch = waiting(due_ms)
    enqueue(state, batch)
    reading = SlotReading(slot_ms, state.wheel, state.log, run_keys_max=run_keys)
    runs = read_all(reading, units_max)
    mine = (due_ms > slot_ms) & (due_ms <= slot_ms + 1000)
    wanted = np.sort(keys_of(due_ms[mine] - slot_ms, batch.queue_offsets[mine]))
    assert [key for run in runs for key in run] == wanted.tolist()
    assert all(len(run) <= 2 * run_keys for run in runs)
    state.log.close()
    state.wheel.close()


def test_a_thin_chain_is_walked_by_its_links(tmp_path: Path) -> None:
    geometry = WheelGeometry(1000, 10, 52 * 3000 + 16)
    state = new_state(tmp_path, geometry)
    due_ms = np.full(2000, NOW_MS + 2500)
    due_ms[[0, 1999]] = NOW_MS + 3500
    enqueue(state, waiting(due_ms))
    reading = SlotReading(NOW_MS + 3000, state.wheel, state.log)
    assert read_all(reading, 1) == [[int(key) for key in keys_of(longs(500, 500), longs(0, 1999))]]


def test_what_arrives_in_a_slot_that_is_being_read_is_not_passed_over(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    enqueue(state, waiting(NOW_MS + longs(100, 200, 300, 400)))
    state.reading = SlotReading(NOW_MS, state.wheel, state.log, run_keys_max=2)
    enqueue(state, waiting(NOW_MS + longs(250), first_offset=90))
    keys = state.reading.read(10)
    assert keys is not None
    assert offsets_in_slot(keys).tolist() == [100, 200]
    enqueue(state, waiting(NOW_MS + longs(150, 999), first_offset=91))
    rest = [key for run in read_all(state.reading, 10) for key in run]
    assert offsets_in_slot(np.array(rest)).tolist() == [250, 300, 400, 999]
    assert state.due.take(NOW_MS + 1000, 10)["queue_offset"].tolist() == [91]


# -- the due list -----------------------------------------------------------------------------


@given(
    batches=st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=20), max_size=12),
    takes=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 15)), max_size=12),
)
def test_the_due_list_gives_what_is_due_in_order(
    batches: list[list[int]], takes: list[tuple[int, int]]
) -> None:
    due, model, offset = DueList(), [], 0
    for step in range(max(len(batches), len(takes))):
        if step < len(batches):
            at_ms = batches[step]
            offsets = list(range(offset, offset + len(at_ms)))
            offset += len(at_ms)
            due.add(items_of(longs(*at_ms), longs(*offsets), 0))
            model = sorted(model + list(zip(at_ms, offsets, strict=True)))
        if step < len(takes):
            until_ms, count_max = takes[step]
            taken = due.take(until_ms, count_max)
            wanted = [item for item in model if item[0] <= until_ms][:count_max]
            assert [(int(item["at_ms"]), int(item["queue_offset"])) for item in taken] == wanted
            model = model[len(wanted) :]
        assert due.size == len(model)
        assert due.next_at_ms == (model[0][0] if model else None)
