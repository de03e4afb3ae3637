"""Allowances: never more than the limit in any window, by whatever process, and nobody starves."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.store.allowances import ROWS, Allowances, Bucket, Daily
from queues.store.disk import Disk

NOW = 1_790_000_000_000
TEN = Bucket("messages", 1, per_second=10, capacity=20)
DAY = Daily("day", 100)


@pytest.fixture
def allowances(tmp_path: Path) -> Iterator[Allowances]:
    opened = Allowances(Disk(), tmp_path)
    yield opened
    opened.close()


def test_a_bucket_gives_its_capacity_at_once_and_then_its_rate(allowances: Allowances) -> None:
    granted = [allowances.use(1, [TEN], 1, NOW)[0] for _ in range(25)]
    assert granted == [True] * 20 + [False] * 5
    granted = [allowances.use(1, [TEN], 1, NOW + 1000)[0] for _ in range(25)]
    assert granted == [True] * 10 + [False] * 15


def test_it_says_what_is_left_and_when_to_come_again(allowances: Allowances) -> None:
    _, (standing,) = allowances.use(1, [TEN], 15, NOW)
    assert (standing.limit, standing.window_s, standing.remaining) == (20, 2, 5)
    assert standing.reset_s == 2
    granted, (standing,) = allowances.use(1, [TEN], 20, NOW)
    assert (granted, standing.remaining, standing.wait_s) == (False, 5, 2)
    assert allowances.use(1, [TEN], 20, NOW + 2000)[0]


def test_a_wish_larger_than_the_bucket_waits_for_all_of_it_and_is_paid_off(
    allowances: Allowances,
) -> None:
    assert allowances.use(1, [TEN], 1, NOW)[0]
    assert not allowances.use(1, [TEN], 1000, NOW)[0]
    assert allowances.use(1, [TEN], 1000, NOW + 1000)[0]
    granted, (standing,) = allowances.use(1, [TEN], 1, NOW + 1001)
    assert not granted
    assert standing.wait_s == 99, "1000 at 10 a second, and the first of the 20 after 98.1 s"
    assert allowances.use(1, [TEN], 1, NOW + 1001 + 99_000)[0]


def test_holders_do_not_see_each_other_unless_they_share_a_row(allowances: Allowances) -> None:
    assert allowances.use(1, [TEN], 20, NOW)[0]
    assert allowances.use(2, [TEN], 20, NOW)[0]
    assert not allowances.use(1 + ROWS, [TEN], 1, NOW)[0]


def test_a_day_ends_at_midnight(allowances: Allowances) -> None:
    assert allowances.use(1, [DAY], 100, NOW)[0]
    granted, (standing,) = allowances.use(1, [DAY], 1, NOW)
    assert not granted
    midnight_ms = NOW + standing.wait_s * 1000
    assert 0 < standing.wait_s <= 86_400
    assert not allowances.use(1, [DAY], 1, midnight_ms - 1001)[0]
    assert allowances.use(1, [DAY], 1, midnight_ms)[0]


def test_if_one_limit_refuses_none_is_used(allowances: Allowances) -> None:
    assert allowances.use(1, [DAY], 95, NOW)[0]
    for _ in range(3):
        assert not allowances.use(1, [TEN, DAY], 10, NOW)[0]
    assert allowances.use(1, [TEN], 20, NOW)[0]


def test_a_clock_that_steps_back_locks_nobody_out(allowances: Allowances) -> None:
    assert allowances.use(1, [TEN], 20, NOW)[0]
    long_ago = NOW - 3_600_000
    granted, (standing,) = allowances.use(1, [TEN], 10, long_ago)
    assert (granted, standing.wait_s) == (False, 1)
    assert allowances.use(1, [TEN], 10, long_ago + 1000)[0]
    assert allowances.use(1, [TEN], 20, NOW + 2000)[0]


def test_what_was_used_is_known_to_whoever_opens_the_file_later(tmp_path: Path) -> None:
    for expected in (True, False):
        opened = Allowances(Disk(), tmp_path)
        assert opened.use(1, [TEN], 20, NOW)[0] is expected
        opened.close()


def test_openers_at_the_same_moment_grant_no_more_than_the_limit(tmp_path: Path) -> None:
    limit = Bucket("messages", 1, per_second=1, capacity=500)
    granted = []

    def use_all() -> None:
        opened = Allowances(Disk(), tmp_path)
        granted.append(sum(opened.use(1, [limit], 1, NOW)[0] for _ in range(300)))
        opened.close()

    threads = [threading.Thread(target=use_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 500


@given(
    wishes=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3000)), min_size=1, max_size=60),
    rate=st.integers(1, 50),
    capacity=st.integers(1, 60),
)
def test_in_no_window_is_more_granted_than_rate_and_capacity_allow(
    tmp_path_factory: pytest.TempPathFactory,
    wishes: list[tuple[int, int]],
    rate: int,
    capacity: int,
) -> None:
    opened = Allowances(Disk(), tmp_path_factory.mktemp("allowances"))
    limit = Bucket("messages", 0, per_second=rate, capacity=capacity)
    now_ms, granted = NOW, []
    for count, pause_ms in wishes:
        now_ms += pause_ms
        allowed, (standing,) = opened.use(1, [limit], count, now_ms)
        if allowed:
            granted.append((now_ms, count))
        else:
            now_ms += standing.wait_s * 1000
            assert opened.use(1, [limit], count, now_ms)[0], "it comes when it was told to"
            granted.append((now_ms, count))
    opened.close()
    for at, (first_ms, _) in enumerate(granted):
        for last in range(at, len(granted)):
            used = sum(count for _, count in granted[at : last + 1])
            # The last wish alone may be larger than the bucket.
            allowed_now = capacity + (granted[last][0] - first_ms) * rate / 1000
            assert (
                used
                <= max(allowed_now, granted[last][1]) + max(0, granted[last][1] - capacity) + 1e-2
            )
