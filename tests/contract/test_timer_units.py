"""The timer's bytes and rules against RocketMQ's (golden vectors of the format description)."""

import numpy as np
import pytest

from queues.store import timerunits
from queues.store.timerunits import SLOT, TIMER_UNIT, RecallHandle, RollPlacement

DAY_S = 86_400
WINDOW_MS = 2 * DAY_S * 1000


@pytest.mark.parametrize(
    ("due_ms", "precision_ms", "slot_ms", "fires_ms"),
    [
        (1_700_000_000_000, 1000, 1_699_999_999_000, 1_700_000_000_000),
        (1_699_999_999_001, 1000, 1_699_999_999_000, 1_700_000_000_000),
        (1_700_000_000_001, 1000, 1_700_000_000_000, 1_700_000_001_000),
        (1_700_000_000_999, 1000, 1_700_000_000_000, 1_700_000_001_000),
        (1_700_000_000_250, 100, 1_700_000_000_200, 1_700_000_000_300),
        (1_700_000_000_200, 100, 1_700_000_000_100, 1_700_000_000_200),
    ],
)
def test_a_due_time_lies_in_the_slot_that_rocketmq_gives_it(
    due_ms: int, precision_ms: int, slot_ms: int, fires_ms: int
) -> None:
    assert timerunits.slot_of(due_ms, precision_ms) == slot_ms
    assert timerunits.slots_of(np.array([due_ms]), precision_ms).tolist() == [slot_ms]
    assert timerunits.fires_at(due_ms, precision_ms) == fires_ms


def test_a_slot_lies_where_rocketmq_puts_it_in_the_wheel() -> None:
    index = timerunits.wheel_index(1_700_000_000_000, 1000, 604_800)
    assert index == 512_000
    assert index * timerunits.SLOT_BYTES == 16_384_000


def test_slots_and_units_have_rocketmqs_sizes() -> None:
    assert SLOT.itemsize == 32
    assert TIMER_UNIT.itemsize == 52
    assert timerunits.BLANK_BYTES_MIN == 16


@pytest.mark.parametrize(
    ("remaining_s", "wait_s", "rolled"),
    [
        (172_799, 172_799, False),
        (172_800, 86_400, True),
        (230_399, 86_400, True),
        (230_400, 172_800, True),
    ],
)
def test_rocketmqs_roll_rule(remaining_s: int, wait_s: int, rolled: bool) -> None:
    placement = timerunits.place_as_rocketmq(remaining_s * 1000, window_ms=WINDOW_MS)
    assert placement == RollPlacement(wait_s * 1000, rolled)


@pytest.mark.parametrize(("days", "hop_days"), [(3, [2, 1]), (30, [2] * 14 + [1, 1]), (1, [1])])
def test_rocketmqs_hops_to_a_far_due_time(days: int, hop_days: list[int]) -> None:
    hops = timerunits.hops_as_rocketmq(days * DAY_S * 1000, window_ms=WINDOW_MS)
    assert hops == [hop * DAY_S * 1000 for hop in hop_days]


def test_a_unit_that_a_broker_wrote_is_read_field_by_field() -> None:
    written = bytes.fromhex(
        "00000034" "0000000000000034" "00000001" "000001a1fc1bc9d0" "000007d0"
        "000000000004f74a" "00000177" "41c14e41" "0000000000000000"
    )  # fmt: skip
    unit = np.frombuffer(written, TIMER_UNIT)[0]
    assert unit["size"] == 52
    assert unit["previous"] == 52
    assert unit["magic"] == timerunits.MAGIC_DEFAULT
    assert int(unit["written_ms"]) + int(unit["delay_ms"]) == 0x1A1FC1BC9D0 + 2000
    assert unit["log_offset"] == 0x4F74A
    assert unit["record_size"] == 375
    assert unit["topic_hash"] == 0x41C14E41


def test_the_reserved_bytes_give_back_the_milliseconds_and_the_queue_offset() -> None:
    inside = np.array([0, 1, 1000, timerunits.PRECISION_MS_MAX])
    offsets = np.array([0, 1, 1 << 40, timerunits.TIMER_QUEUE_OFFSET_MAX])
    packed = timerunits.pack_reserved(inside, offsets)
    assert (packed > 0).all()
    again = timerunits.unpack_reserved(packed.astype(">i8"))
    assert again[0].tolist() == inside.tolist()
    assert again[1].tolist() == offsets.tolist()


def whole_unit() -> bytes:
    unit = np.zeros(1, TIMER_UNIT)
    unit["size"], unit["magic"], unit["previous"] = 52, timerunits.MAGIC_DEFAULT, -1
    unit["reserved"] = timerunits.pack_reserved(np.array([1000]), np.array([77]))
    return unit.tobytes()


def test_a_unit_written_to_its_last_byte_is_whole() -> None:
    assert timerunits.whole_units(np.frombuffer(whole_unit(), TIMER_UNIT)).all()


@pytest.mark.parametrize("cut", range(52))
def test_a_unit_whose_end_was_never_written_is_not_whole(cut: int) -> None:
    torn = whole_unit()[:cut].ljust(52, b"\0")
    assert not timerunits.whole_units(np.frombuffer(torn, TIMER_UNIT)).any()


@pytest.mark.parametrize("missing", range(4, 52))
def test_a_unit_whose_beginning_never_reached_the_disk_is_not_whole(missing: int) -> None:
    torn = whole_unit()[missing:].rjust(52, b"\0")
    assert not timerunits.whole_units(np.frombuffer(torn, TIMER_UNIT)).any()


def test_a_recall_handle_is_rocketmqs() -> None:
    text = (
        "djEgb3JkZXJzIGJyb2tlci1hIDE3MDAwMDAwMDAwMDEgN0YwMDAwMDEwMDAwMDAwMDAwMDAwMDAwMDAwMEFCQ0Q="
    )
    handle = RecallHandle(
        "orders", "broker-a", 1_700_000_000_001, "7F00000100000000000000000000ABCD"
    )
    assert handle.encode() == text
    assert RecallHandle.decode(text) == handle


@pytest.mark.parametrize("text", ["", "!!", "djIgYSBiIDEgYw==", "djEgYQ=="])
def test_what_is_no_recall_handle_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a recall handle"):
        RecallHandle.decode(text)
