"""Receiving: consumers lease messages, hold them longer, give them back, acknowledge them.

A poll that finds nothing sleeps on the watch and is woken when its group has something; nothing is
asked over and over. However many polls wait, other requests keep threads of their own: above the
configured number a poll answers at once.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from queues import wires
from queues.selectors.control import GroupView, get_group
from queues.services.broadcasting import as_shown, enter, is_broadcasting, mark, names_of, settle
from queues.store.consuming import Delivery
from queues.store.leases import Extended


@dataclass(frozen=True, slots=True)
class Polled:
    """What a poll brought."""

    deliveries: list[Delivery]
    #: The group is paused.
    paused: bool = False
    #: Queues with as many leases as they may have: they hand out nothing.
    full: Sequence[tuple[str, int]] = ()


class _Waiting:
    """How many polls of this process wait."""

    count = 0
    mutex = threading.Lock()


def receive(
    *,
    group: GroupView,
    max_messages: int,
    wait_ms: int,
    lease_ms: int,
    consumer_id: str | None = None,
) -> Polled:
    """Lease what is ready; with nothing there, wait for it."""
    full: set[tuple[str, int]] = set()
    member = enter(group, consumer_id) if is_broadcasting(group) else None
    name, holder = (group.name, consumer_id) if member is None else (member.name, None)
    wiring = wires.wiring()
    clock, watch = wiring.get_clock(), wiring.get_watch()
    give_up_ms = clock.monotonic_ms() + wait_ms
    while not group.paused:
        received = wiring.get_consuming().receive(
            name,
            group.sources,
            max_messages=max_messages,
            lease_ms=lease_ms,
            now_ms=clock.now_ms(),
            consumer_id=holder,
        )
        if received.deliveries:
            if received.more:
                watch.wake(name)
            deliveries = received.deliveries
            if member is not None:
                deliveries = as_shown(member, deliveries)
            return Polled(deliveries, full=sorted(received.full))
        full = set(received.full)
        left_ms = give_up_ms - clock.monotonic_ms()
        if left_ms <= 0:
            break
        with _place_to_wait() as found:
            woken = found and watch.wait(name, group.sources, left_ms / 1000)
        group = get_group(group.name)
        if not woken:
            break
    return Polled([], paused=group.paused, full=sorted(full))


def acknowledge(*, group: GroupView, receipts: Sequence[str]) -> Sequence[str]:
    """`acked`, `expired` or `invalid` for each receipt, in order."""
    wiring = wires.wiring()
    consuming, now_ms = wiring.get_consuming(), wiring.get_clock().now_ms()
    outcomes = settle(
        group, receipts, lambda name, mine: consuming.ack(name, mine, now_ms), "invalid"
    )
    if group.ordered:
        for name in names_of(group):  # The next of their keys may come now.
            wiring.get_watch().wake(name, outcomes.count("acked"))
    return outcomes


def drop(*, group: GroupView, receipts: Sequence[str], reason: str | None) -> Sequence[str]:
    """Log and settle what failed in a broadcasting group: `dropped`, `expired` or `invalid`."""
    wiring = wires.wiring()
    dropping, now_ms = wiring.get_consuming().dropping, wiring.get_clock().now_ms()
    outcomes = settle(
        group,
        receipts,
        lambda name, mine: dropping.drop(name, mine, now_ms, reason),
        "invalid",
    )
    if "dropped" in outcomes:
        wiring.get_store().count("dropped", outcomes.count("dropped"))
    return outcomes


def extend(*, group: GroupView, receipts: Sequence[str], lease_ms: int) -> list[Extended]:
    """Let leases end so long from now; the receipts shown are void then."""
    wiring = wires.wiring()
    now_ms = wiring.get_clock().now_ms()
    leases = wiring.get_consuming().leases

    def act(name: str, mine: Sequence[str]) -> list[Extended]:
        extended = leases.extend(name, mine, lease_ms=lease_ms, now_ms=now_ms)
        return [
            one
            if one.new_receipt is None
            else one._replace(new_receipt=mark(name, one.new_receipt))
            for one in extended
        ]

    return settle(group, receipts, act, Extended("invalid"))


def release(*, group: GroupView, receipts: Sequence[str]) -> Sequence[str]:
    """Give messages back, ready at once: `released`, `expired` or `invalid` for each receipt."""
    wiring = wires.wiring()
    leases, watch = wiring.get_consuming().leases, wiring.get_watch()

    def act(name: str, mine: Sequence[str]) -> Sequence[str]:
        outcomes = leases.release(name, mine)
        watch.wake(name, outcomes.count("released"))
        return outcomes

    return settle(group, receipts, act, "invalid")


@contextmanager
def _place_to_wait() -> Iterator[bool]:
    """One of the places for waiting polls; False when all are taken."""
    with _Waiting.mutex:
        free = _Waiting.count < wires.wiring().get_rules().polls_max
        _Waiting.count += free
    try:
        yield free
    finally:
        with _Waiting.mutex:
            _Waiting.count -= free
