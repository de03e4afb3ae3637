"""The arithmetic of a demo run, as facts."""

import pytest

from queues.demo.accounts import Accounts, Arrival, quantile

DUE_MS = 1_000_000


def arrival(
    message_id: int, *, attempt: int = 1, late_ms: int = 2, arrived_ms: int | None = None
) -> Arrival:
    return Arrival(
        message_id=str(message_id),
        attempt=attempt,
        due_ms=DUE_MS,
        delivered_ms=DUE_MS + late_ms,
        arrived_ms=arrived_ms,
    )


@pytest.fixture
def accounts() -> Accounts:
    """Four accepted orders, all due at the same time."""
    accounts = Accounts()
    for number in range(4):
        accounts.accept(str(number), due_ms=DUE_MS)
    return accounts


def test_a_run_where_each_order_ends_once_has_no_fault(accounts: Accounts) -> None:
    accounts.cancel("0")
    accounts.refuse_cancel("1")
    for number in (1, 2, 3):
        accounts.receive(arrival(number))
    summary = accounts.summary()
    assert summary.faults == 0
    assert (summary.accepted, summary.cancelled, summary.too_late, summary.closed) == (4, 1, 1, 3)
    assert accounts.waiting() == set()


def test_an_order_that_neither_was_cancelled_nor_came_is_lost(accounts: Accounts) -> None:
    accounts.cancel("0")
    accounts.receive(arrival(1))
    assert accounts.waiting() == {"2", "3"}
    assert accounts.summary().lost == 2
    assert accounts.summary().faults == 2


def test_a_cancel_answered_too_late_does_not_excuse_an_order_that_never_came(
    accounts: Accounts,
) -> None:
    accounts.refuse_cancel("0")
    assert "0" in accounts.waiting()


def test_a_second_first_attempt_is_doubled(accounts: Accounts) -> None:
    accounts.receive(arrival(0))
    accounts.receive(arrival(0))
    assert accounts.summary().doubled == 1
    assert accounts.summary().closed == 1


def test_a_repeated_attempt_is_redelivered_and_no_fault(accounts: Accounts) -> None:
    for number in range(4):
        accounts.receive(arrival(number))
    accounts.receive(arrival(0, attempt=2))
    assert accounts.summary().redelivered == 1
    assert accounts.summary().faults == 0


def test_a_message_received_after_its_cancel_is_untrue(accounts: Accounts) -> None:
    accounts.cancel("0")
    accounts.receive(arrival(0))
    assert accounts.summary().untrue == 1


def test_a_hand_over_one_millisecond_before_its_due_time_is_early(accounts: Accounts) -> None:
    accounts.receive(arrival(0, late_ms=0))
    accounts.receive(arrival(1, late_ms=-1))
    assert accounts.summary().early == 1


def test_an_arrival_before_the_due_time_by_the_shared_clock_is_early(accounts: Accounts) -> None:
    accounts.receive(arrival(0, arrived_ms=DUE_MS))
    accounts.receive(arrival(1, arrived_ms=DUE_MS - 1))
    assert accounts.summary().early == 1


def test_the_promise_of_the_post_counts_and_not_the_due_time_of_the_delivery() -> None:
    accounts = Accounts()
    accounts.accept("0", due_ms=DUE_MS + 50)
    accounts.receive(arrival(0, late_ms=2))
    assert accounts.summary().early == 1


def test_a_message_whose_post_was_never_answered_is_counted_apart(accounts: Accounts) -> None:
    for number in range(5):
        accounts.receive(arrival(number))
    summary = accounts.summary()
    assert (summary.closed, summary.unanswered, summary.faults) == (4, 1, 0)


def test_late_is_counted_above_a_hundred_milliseconds_and_is_no_fault(accounts: Accounts) -> None:
    accounts.receive(arrival(0, late_ms=100))
    accounts.receive(arrival(1, late_ms=101))
    assert accounts.summary().late == 1
    assert accounts.summary().early == 0


def test_lateness_is_given_by_nearest_rank(accounts: Accounts) -> None:
    for number, late_ms in enumerate((1, 2, 3, 90)):
        accounts.receive(arrival(number, late_ms=late_ms))
    summary = accounts.summary()
    assert summary.lateness_p50_ms == 2
    assert summary.lateness_p99_ms == 90
    assert summary.lateness_max_ms == 90


@pytest.mark.parametrize(
    ("values", "permille", "expected"),
    [
        ([], 500, None),
        ([7], 0, 7),
        ([7], 1000, 7),
        ([1, 2, 3, 4], 500, 2),
        (list(range(1, 101)), 990, 99),
        (list(range(1, 1001)), 990, 990),
        (list(range(1, 102)), 990, 100),
    ],
)
def test_a_quantile_is_the_smallest_value_that_reaches_its_share(
    values: list[int], permille: int, expected: int | None
) -> None:
    assert quantile(values, permille=permille) == expected
