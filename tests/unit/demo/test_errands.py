"""Errands: payments come at their moments and before posts, and end with the last of both."""

import threading

import pytest

from queues.demo.buyers import Errands, message_of
from queues.demo.orders import Order, Parcel
from tests.support.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


def parcel(number: int) -> Parcel:
    return Parcel((Order(number=number, delay_ms=2_500, level=None, paid_before_ms=None),))


def errands(clock: ManualClock, *parcels: Parcel) -> Errands:
    return Errands(parcels, clock=clock, stop=threading.Event())


def test_parcels_come_in_the_order_of_the_plan(clock: ManualClock) -> None:
    todo = errands(clock, parcel(1), parcel(2))
    assert todo.next() == parcel(1)
    assert todo.next() == parcel(2)


def test_a_payment_that_is_due_comes_before_the_next_parcel(clock: ManualClock) -> None:
    todo = errands(clock, parcel(1), parcel(2), parcel(3))
    todo.next()
    todo.posted([(1_500, "late"), (1_200, "soon")])
    assert todo.next() == parcel(2)
    clock.advance(500)
    assert todo.next() == "soon"
    assert todo.next() == "late"
    assert todo.next() == parcel(3)


def test_errands_end_when_all_is_posted_and_paid(clock: ManualClock) -> None:
    todo = errands(clock, parcel(1))
    todo.next()
    todo.posted([(900, "a")])
    assert todo.next() == "a"
    assert todo.next() is None


def test_errands_end_at_once_when_the_run_stops(clock: ManualClock) -> None:
    stop = threading.Event()
    todo = Errands([parcel(1)], clock=clock, stop=stop)
    stop.set()
    assert todo.next() is None


def test_an_exact_order_is_posted_with_its_delay_and_a_level_order_with_its_level() -> None:
    exact = Order(number=1, delay_ms=2_500, level=None, paid_before_ms=None)
    levelled = Order(number=2, delay_ms=5_000, level=2, paid_before_ms=None)
    assert message_of(exact, run_name="r")["delay_ms"] == 2_500
    assert "delay_level" not in message_of(exact, run_name="r")
    assert message_of(levelled, run_name="r")["delay_level"] == 2
    assert "delay_ms" not in message_of(levelled, run_name="r")
