"""The plan of a demo run, as facts."""

from queues.demo.orders import (
    BATCH_SIZE_MAX,
    DEADLINE_MS_MAX,
    DEADLINE_MS_MIN,
    Order,
    fitting_levels,
    plan_orders,
)

LEVELS_MS = {1: 1_000, 2: 5_000, 3: 10_000, 4: 30_000}


def planned(count: int = 2_000, *, seed: int = 7) -> list[Order]:
    parcels = plan_orders(count=count, seed=seed, level_delays_ms=LEVELS_MS)
    return [order for parcel in parcels for order in parcel.orders]


def test_a_plan_holds_every_order_exactly_once() -> None:
    assert sorted(order.number for order in planned()) == list(range(2_000))


def test_the_same_seed_gives_the_same_plan() -> None:
    assert planned(seed=3) == planned(seed=3)
    assert planned(seed=3) != planned(seed=4)


def test_exactly_seventy_per_cent_are_paid() -> None:
    assert sum(1 for order in planned() if order.paid_before_ms is not None) == 1_400


def test_every_deadline_lies_between_two_and_twenty_seconds() -> None:
    assert all(DEADLINE_MS_MIN <= order.delay_ms <= DEADLINE_MS_MAX for order in planned())


def test_levels_and_exact_times_are_mixed() -> None:
    levels = [order.level for order in planned() if order.level is not None]
    assert set(levels) == {2, 3}
    assert 400 < len(levels) < 800


def test_a_level_order_has_the_delay_of_its_level() -> None:
    levelled = [order for order in planned() if order.level is not None]
    assert all(order.delay_ms == LEVELS_MS[order.level or 0] for order in levelled)


def test_an_order_is_paid_after_its_post_and_not_after_its_deadline() -> None:
    paid = [order for order in planned() if order.paid_before_ms is not None]
    assert all(0 <= (order.paid_before_ms or 0) < order.delay_ms for order in paid)


def test_three_in_ten_orders_are_posted_one_by_one_and_the_others_in_batches() -> None:
    parcels = plan_orders(count=2_000, seed=7, level_delays_ms=LEVELS_MS)
    sizes = [len(parcel.orders) for parcel in parcels]
    assert max(sizes) <= BATCH_SIZE_MAX
    assert 600 <= sizes.count(1) <= 601


def test_a_server_without_a_fitting_level_gets_exact_times_only() -> None:
    assert fitting_levels({1: 1_000, 2: 60_000}) == {}
    parcels = plan_orders(count=50, seed=1, level_delays_ms={1: 1_000})
    assert all(order.level is None for parcel in parcels for order in parcel.orders)
