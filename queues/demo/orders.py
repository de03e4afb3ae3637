"""An order is a message dated for its payment deadline; a plan is every order of one run.

The same seed, number of orders and level table give the same plan, to the last millisecond:

| What | How |
|---|---|
| deadline | 2 to 20 s after the post: three in ten by a delay level that fits, the others exact |
| paid | exactly 70 % of the orders, at a random time before the deadline |
| paid at the last moment | one paid order in fifty, within the last 20 ms: it may be `too_late` |
| posted | three in ten of the orders one by one, the others in batches of 2 to 100 |

Worked example: order 7 is exact, due 3,512 ms after its post, and paid 1,200 ms before it is due:
its message is cancelled 2,312 ms after the post.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random  # noqa: TID251 -- a plan is made of repeatable chance

#: The earliest and the latest deadline after the post, in milliseconds.
DEADLINE_MS_MIN, DEADLINE_MS_MAX = 2_000, 20_000
PAID_SHARE = 0.7
LEVEL_SHARE = 0.3
SINGLE_SHARE = 0.3
LAST_MOMENT_SHARE = 0.02
LAST_MOMENT_MS = 20
BATCH_SIZE_MAX = 100


@dataclass(frozen=True, slots=True)
class Order:
    """One order: when it is due, and when it is paid."""

    #: Counts from 0 and names the order in its key and its body.
    number: int
    #: The deadline, counted from the post, in milliseconds.
    delay_ms: int
    #: The delay level that gives this delay; None when the deadline is exact.
    level: int | None
    #: How long before its deadline the order is paid, in milliseconds; None when it never is.
    paid_before_ms: int | None


@dataclass(frozen=True, slots=True)
class Parcel:
    """The orders of one request: one alone, or a batch."""

    #: In the order in which they are posted; never empty.
    orders: tuple[Order, ...]


def fitting_levels(
    delays_ms: Mapping[int, int], *, deadline_ms_max: int = DEADLINE_MS_MAX
) -> dict[int, int]:
    """The levels of a server's table that lie between the earliest and the latest deadline."""
    return {
        level: delay_ms
        for level, delay_ms in delays_ms.items()
        if DEADLINE_MS_MIN <= delay_ms <= deadline_ms_max
    }


def plan_orders(
    *,
    count: int,
    seed: int,
    level_delays_ms: Mapping[int, int],
    deadline_ms_max: int = DEADLINE_MS_MAX,
) -> tuple[Parcel, ...]:
    """Every order of a run, grouped into the requests that post them, shuffled."""
    chance = Random(seed)  # noqa: S311 -- a plan must be repeatable, not unguessable
    paid = set(chance.sample(range(count), round(count * PAID_SHARE)))
    fitting = fitting_levels(level_delays_ms, deadline_ms_max=deadline_ms_max)
    levels = sorted(fitting.items())
    orders = [
        _order(number, chance, levels, deadline_ms_max, paid=number in paid)
        for number in range(count)
    ]
    chance.shuffle(orders)
    singles = round(count * SINGLE_SHARE)
    parcels = [Parcel((order,)) for order in orders[:singles]]
    parcels += _batches(orders[singles:], chance)
    chance.shuffle(parcels)
    return tuple(parcels)


def _order(
    number: int,
    chance: Random,
    levels: Sequence[tuple[int, int]],
    deadline_ms_max: int,
    *,
    paid: bool,
) -> Order:
    level, delay_ms = None, chance.randint(DEADLINE_MS_MIN, deadline_ms_max)
    if levels and chance.random() < LEVEL_SHARE:
        level, delay_ms = chance.choice(levels)
    paid_before_ms = _paid_before_ms(delay_ms, chance) if paid else None
    return Order(number=number, delay_ms=delay_ms, level=level, paid_before_ms=paid_before_ms)


def _paid_before_ms(delay_ms: int, chance: Random) -> int:
    if chance.random() < LAST_MOMENT_SHARE:
        return chance.randint(0, LAST_MOMENT_MS)
    return chance.randint(delay_ms // 20, delay_ms - delay_ms // 20)


def _batches(orders: Sequence[Order], chance: Random) -> list[Parcel]:
    batches: list[Parcel] = []
    start = 0
    while start < len(orders):
        size = chance.randint(2, BATCH_SIZE_MAX)
        batches.append(Parcel(tuple(orders[start : start + size])))
        start += size
    return batches
