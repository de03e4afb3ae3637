"""Facts folded from a log, against cases computed by hand."""

from collections.abc import Callable
from pathlib import Path

import pytest

from analytics.buckets import UNKNOWN, bucket_of
from queues.store import Sizes, StoreSettings
from queues.store.failing import Verdict, dead_letter
from tests.support.chainworld import GROUP, RULE, Process, id_of
from tests.support.clock import ManualClock
from tests.support.folding import counts, fold, rows_of
from tests.support.loglines import MINUTE_MS, NOON_MS, SMALL, LivedStore


def test_a_hand_over_is_counted_with_its_lateness(lived: LivedStore) -> None:
    lived.send("orders", delay_ms=MINUTE_MS)
    lived.send("orders", level=1)
    lived.after(1_000).after(59_007).flush()
    facts, seen = fold(lived.store.root)
    assert rows_of(facts, "delivered") == [
        ((NOON_MS, "orders", "level", 1), 0, 1, 0, 0),
        ((NOON_MS, "orders", "timed"), 7, 1, 7, 7),
    ]
    assert seen.records == 4
    assert seen.damaged == 0


def test_the_delay_asked_for_is_counted_where_it_was_sent(lived: LivedStore) -> None:
    lived.send("orders", delay_ms=MINUTE_MS)
    lived.send("a-topic-with-a-longer-name", level=2)
    lived.send("orders")
    lived.flush()
    facts, _ = fold(lived.store.root)
    assert rows_of(facts, "sent") == [
        ((NOON_MS, "a-topic-with-a-longer-name", "level", 2), bucket_of(5000), 1, 5000, 5000),
        ((NOON_MS, "orders", "immediate"), 0, 1, 0, 0),
        ((NOON_MS, "orders", "timed"), bucket_of(60_000), 1, 60_000, 60_000),
    ]


def test_a_quarter_hour_is_the_hand_overs_own(lived: LivedStore) -> None:
    lived.send("orders", delay_ms=14 * MINUTE_MS)
    lived.after(16 * MINUTE_MS).flush()
    facts, _ = fold(lived.store.root)
    late_ms = 2 * MINUTE_MS
    assert rows_of(facts, "delivered") == [
        ((NOON_MS + 15 * MINUTE_MS, "orders", "timed"), bucket_of(late_ms), 1, late_ms, late_ms)
    ]
    assert rows_of(facts, "slot") == [((NOON_MS,), 14 * 60, 1, 0, 0)]


def test_a_cancel_says_how_long_before_it_was_due(lived: LivedStore) -> None:
    message_id = lived.send("orders", delay_ms=MINUTE_MS)
    lived.clock.advance(20_000)
    lived.store.cancel(message_id, by="key:test")
    lived.flush()
    facts, _ = fold(lived.store.root)
    assert rows_of(facts, "cancelled") == [
        ((NOON_MS, "orders", "timed"), bucket_of(40_000), 1, 40_000, 40_000)
    ]


def test_a_move_says_how_long_before_its_former_due_time(lived: LivedStore) -> None:
    message_id = lived.send("orders", delay_ms=MINUTE_MS)
    lived.clock.advance(10_000)
    lived.store.move(message_id, NOON_MS + 5 * MINUTE_MS, by=None)
    lived.clock.advance(5 * MINUTE_MS)
    lived.hand_over_due()
    lived.flush()
    facts, _ = fold(lived.store.root)
    assert rows_of(facts, "moved") == [
        ((NOON_MS, "orders", "timed"), bucket_of(50_000), 1, 50_000, 50_000)
    ]
    # Counted from the new due time, which it was promised; sent once, moved once.
    assert rows_of(facts, "delivered")[0][2:] == (1, 10_000, 10_000)
    assert counts(facts)["sent"] == 1


def test_parked_and_restored_messages_are_counted(lived: LivedStore) -> None:
    message_id = lived.send("orders", delay_ms=MINUTE_MS)
    lived.store.cancel(message_id, by=None)
    lived.store.restore(message_id, by=None)
    lived.store.park("rmq_sys_wheel_timer", 0, 1, reason="its topic is gone")
    lived.flush()
    facts, _ = fold(lived.store.root)
    assert counts(facts) == {"sent": 1, "cancelled": 1, "restored": 1, "parked": 1}
    assert rows_of(facts, "parked")[0][0][-1] == "its topic is gone"


def one_is_retried_and_one_dies(process: Process) -> tuple[str, str]:
    """The ids of two messages that failed."""
    now_ms = process.clock.now_ms()
    retried, dead = process.send(2)
    receipts = {id_of(delivery): delivery.receipt for delivery in process.receive()}
    fail = process.consuming.failing.fail
    fail(GROUP, [receipts[retried]], RULE, Verdict("broken"), now_ms)
    fail(GROUP, [receipts[dead]], RULE, dead_letter("never"), now_ms)
    return retried, dead


def test_what_a_group_gives_up_is_no_cancelled_message(tmp_path: Path) -> None:
    clock = ManualClock()
    process = Process(tmp_path / "store", clock)
    retried, dead = one_is_retried_and_one_dies(process)
    chains = process.store.chains
    assert chains.move_retry(GROUP, retried, clock.now_ms() + 60_000, by="key:test")
    assert chains.cancel_retry(GROUP, retried, by="key:test", reason=None).outcome == "cancelled"
    assert chains.discard(GROUP, dead, by="key:test")
    process.store.flush()
    found = counts(fold(process.store.root)[0])
    process.close()
    assert found["retried"] == found["dead"] == 1
    assert not found.keys() & {"cancelled", "moved", "restored"}


def test_retries_and_redriven_messages_count_for_the_topic_they_were_sent_to(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    process = Process(tmp_path / "store", clock)
    _, dead = one_is_retried_and_one_dies(process)
    clock.advance(60_000)
    process.hand_over()
    process.store.chains.redrive(GROUP, dead, by="key:test", retry_queues=1)
    process.store.flush()
    facts, _ = fold(process.store.root)
    process.close()
    for fact in ("redelivered", "redriven"):
        found = [series for series, _ in facts if series.fact == fact]
        assert [(series.topic, series.group) for series in found] == [("orders", GROUP)]


@pytest.mark.parametrize("cut", [1, 137, 600])
def test_any_split_into_ranges_adds_up_to_the_same(lived: LivedStore, cut: int) -> None:
    ends = []
    for number in range(40):
        lived.send(f"topic-{number % 3}", level=1 + number % 4, delay_ms=0)
        lived.send(f"topic-{number % 5}", delay_ms=1 + 997 * number)
        lived.after(701)
        lived.flush()
        ends.append(lived.store.flushed)
    whole, _ = fold(lived.store.root)
    bound = ends[cut % len(ends)]
    first, _ = fold(lived.store.root, 0, bound)
    second, _ = fold(lived.store.root, bound, None)
    summed = dict(first)
    for key, (count, total, longest) in second.items():
        before = summed.get(key, (0, 0, 0))
        summed[key] = (before[0] + count, before[1] + total, max(before[2], longest))
    assert summed == whole


def test_pieces_of_a_segment_are_read_once_each(
    lived: LivedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.log.extent.PIECE_BYTES_MIN", 20_000)
    monkeypatch.setattr("analytics.log.walk.SPAN_BYTES_MAX", 7_000)
    for number in range(700):
        lived.send("orders", delay_ms=1000 + number, body=b"b" * (number % 300 + 1))
    lived.after(10_000).flush()
    whole, seen = fold(lived.store.root)
    parts, seen_parts = fold(lived.store.root, pieces=16)
    assert parts == whole
    assert seen_parts.records == seen.records == 1400
    assert counts(whole) == {"sent": 700, "delivered": 700, "slot": 700}


def test_a_log_of_several_segments_is_read_over_their_fillers(tmp_path: Path) -> None:
    settings = StoreSettings(sizes=Sizes(**{**_sizes(), "segment_bytes": 1 << 16}),
                             ballast_bytes=1 << 16)  # fmt: skip
    lived = LivedStore.make(tmp_path / "store", settings)
    for _ in range(500):
        lived.send("orders", level=1)
    lived.after(1_002).close()
    facts, seen = fold(tmp_path / "store")
    assert counts(facts) == {"sent": 500, "delivered": 500, "slot": 500}
    assert seen.damaged == 0


def _sizes() -> dict[str, int]:
    sizes = SMALL.sizes
    return {name: getattr(sizes, name) for name in sizes.__dataclass_fields__}


def test_a_damaged_record_is_counted_and_the_others_are_read(lived: LivedStore) -> None:
    for _ in range(9):
        lived.send("orders", level=1)
    lived.flush()
    segment = lived.store.root / "commitlog" / f"{0:020d}"
    size = lived.store.flushed // 9
    with segment.open("r+b") as file:
        file.seek(4 * size + 100)
        file.write(b"\xff")
    facts, seen = fold(lived.store.root)
    assert counts(facts) == {"sent": 8}
    assert seen.damaged == 1
    assert seen.damages[0][0] == 4 * size
    # Flipped bits inside a record are not noticed without its CRC.
    assert fold(lived.store.root, verify="structure")[1].damaged == 0


def test_a_hole_is_stepped_over(lived: LivedStore) -> None:
    for _ in range(9):
        lived.send("orders", level=1)
    lived.flush()
    size = lived.store.flushed // 9
    with (lived.store.root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(2 * size)
        file.write(bytes(3 * size))
    facts, seen = fold(lived.store.root)
    assert counts(facts) == {"sent": 6}
    assert (seen.damaged, seen.damages[0][0]) == (1, 2 * size)


def test_nothing_is_read_that_is_not_flushed(lived: LivedStore) -> None:
    lived.send("orders", level=1)
    lived.flush()
    lived.send("orders", level=1)
    assert counts(fold(lived.store.root)[0]) == {"sent": 1}


@pytest.mark.parametrize("name", ["clean", "crashed", "rolled"])
def test_a_brokers_log_is_read_to_its_last_record(
    broker_store: Callable[[str], Path], name: str
) -> None:
    facts, seen = fold(broker_store(name))
    assert seen.records == {"clean": 181, "crashed": 178, "rolled": 30}[name]
    assert seen.damaged == 0
    told = counts(facts)
    assert told["delivered"] == {"clean": 103, "crashed": 101, "rolled": 5}[name]
    # A level's record does not say when it was due; a timed one was late within its slot.
    for (series, bucket), (_, _, longest) in facts.items():
        if series.fact == "delivered" and series.kind == "level":
            assert bucket == UNKNOWN
        if series.fact == "delivered" and series.kind == "timed":
            assert 0 <= longest < 1000


def test_a_brokers_retries_and_dead_letters_keep_their_group(
    broker_store: Callable[[str], Path],
) -> None:
    facts, _ = fold(broker_store("clean"))
    for fact in ("retried", "dead", "redelivered"):
        rows = rows_of(facts, fact)
        assert rows
        assert all("billing" in row[0] for row in rows)


def test_asked_for_deliveries_alone_nothing_else_is_counted_or_verified(
    lived: LivedStore,
) -> None:
    for _ in range(6):
        lived.send("orders", level=1)
        lived.send("payments")
    lived.after(1_003).flush()
    whole, _ = fold(lived.store.root)
    some, seen = fold(lived.store.root, deliveries_only=True)
    assert some == {key: sums for key, sums in whole.items() if key[0].fact == "delivered"}
    assert counts(some) == {"delivered": 12}
    with (lived.store.root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(100)  # Inside the body of the first holding record.
        file.write(b"\xff")
        file.seek(seen.last_offset + 100)  # And of the last delivered one.
        file.write(b"\xff")
    damaged, seen = fold(lived.store.root, deliveries_only=True)
    assert counts(damaged) == {"delivered": 11}
    assert seen.damaged == 1
    assert fold(lived.store.root)[1].damaged == 2
