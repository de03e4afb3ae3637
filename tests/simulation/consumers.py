"""What consumers of a simulated world do: receive, and say what became of what they received."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from queues.store import Store
from queues.store.consuming import Consuming, Subscription
from queues.store.failing import Verdict, dead_letter
from queues.store.retryrules import RetryRule
from tests.simulation.groups import GROUPS, PLAIN, RETRYING, Entry, Lease, Said
from tests.simulation.roles import REFUSALS, UNCERTAIN
from tests.simulation.turns import Process

if TYPE_CHECKING:
    from tests.simulation.world import World

SOURCES = {
    RETRYING: [
        Subscription("orders"), Subscription("mail", "a || b"), Subscription(f"%RETRY%{RETRYING}")
    ],
    PLAIN: [Subscription("orders")],
}  # fmt: skip
_SECRET = b"a secret of the simulation"
#: A lease as short as the API allows, one of a minute, and one longer than the clock's usual steps.
_LEASES_MS = (10_000, 60_000, 600_000)


def open_consuming(world: "World", store: Store) -> Consuming:
    """Consuming of both groups, for one process."""
    consuming = Consuming(store, _SECRET)
    consuming.rule_of = lambda group: world.rule if group == RETRYING else None
    if world.traced:
        consuming.tracer = store.traces
    return consuming


def rule_of(world: "World") -> RetryRule:
    """The rule of the group that tries again: by levels, or with delays of its own."""
    delays_ms = world.chance.choice((None, (1_000, 20_000)))
    return RetryRule(world.settings.levels, retries_max=2, queues=2, delays_ms=delays_ms)


def consumer(world: "World", process: Process) -> None:
    """Receive, acknowledge, extend, give back, fail; drive dead letters again."""
    store = world.open_store(process)
    consuming = open_consuming(world, store)
    while not world.leaving(process):
        kind = world.chance.choices(list(_DEEDS), [weight for _, weight in _DEEDS.values()])[0]
        _DEEDS[kind][0](world, store, consuming)
        process.pause()
    save(world, consuming.close)
    store.close()


def save(world: "World", close_or_save: Callable[[], None]) -> None:
    """Put on the device what was acknowledged; from then on power loss takes nothing of it."""
    begun = world.history.groups.event()
    close_or_save()
    world.history.groups.saves.append((begun, world.history.groups.event()))


def receive(
    world: "World", consuming: Consuming, group: str, lease_ms: int, count: int
) -> list[Lease]:
    """Receive, and take down what came."""
    groups = world.history.groups
    asked = groups.event()
    deliveries = consuming.receive(
        group, SOURCES[group], max_messages=count, lease_ms=lease_ms, now_ms=world.clock.now_ms(),
        consumer_id=world.chance.choice((None, "one", "two")),
    ).deliveries  # fmt: skip
    told = groups.event()
    leases = [
        Lease(
            Entry(group, one.topic, one.queue_id, one.queue_offset), one.attempt, one.receipt,
            one.lease_expires_ms, asked, told, world.latest_ms, one.record,
        )
        for one in deliveries
    ]  # fmt: skip
    groups.leases += leases
    return leases


def say(
    world: "World", leases: list[Lease], what: str, ask: Callable[[list[str]], list[Any]]
) -> None:
    """Say something of leases, and take down what was answered."""
    groups = world.history.groups
    said = [Said(what, groups.event()) for _ in leases]
    for lease, one in zip(leases, said, strict=True):
        lease.said.append(one)
        if what == "ack":
            groups.tried.add(lease.entry)
    answers = ask([lease.receipt for lease in leases])
    told = groups.event()
    for lease, one, answer in zip(leases, said, answers, strict=True):
        one.told, one.latest_ms = told, world.latest_ms
        one.answer = answer if isinstance(answer, str) else answer[0]
        if one.answer == "acked":
            groups.note_ack(lease.entry, told)
        elif what in ("retry", "dead"):
            one.next_ms = answer.next_ms
        elif one.answer == "extended":
            groups.leases.append(
                Lease(lease.entry, lease.attempt, answer.new_receipt, answer.until_ms, one.asked,
                      told, world.latest_ms)
            )  # fmt: skip


def acknowledge(world: "World", consuming: Consuming, leases: list[Lease]) -> None:
    """Acknowledge leases of one group."""
    if leases:
        group = leases[0].entry.group
        say(world, leases, "ack", lambda shown: consuming.ack(group, shown, world.clock.now_ms()))


def _received(world: "World", store: Store, consuming: Consuming) -> None:  # noqa: ARG001
    chance = world.chance
    group, count = chance.choice(GROUPS), chance.choice((1, 3, 20))
    _suffered(lambda: receive(world, consuming, group, chance.choice(_LEASES_MS), count))


def _said(what: str) -> Callable[["World", Store, Consuming], None]:
    def deed(world: "World", store: Store, consuming: Consuming) -> None:  # noqa: ARG001
        chance, recent = world.chance, world.history.groups.leases[-40:]
        group = RETRYING if what in ("retry", "dead") else chance.choice(GROUPS)
        mine = [lease for lease in recent if lease.entry.group == group]
        leases = chance.sample(mine, min(len(mine), chance.choice((1, 1, 3, 12))))
        if leases:
            now_ms, lease_ms = world.clock.now_ms(), chance.choice(_LEASES_MS)

            def ask(shown: list[str]) -> list[Any]:
                return _ASKED[what](world, consuming, group, shown, now_ms, lease_ms)

            _suffered(lambda: say(world, leases, what, ask))

    return deed


def _redriven(world: "World", store: Store, consuming: Consuming) -> None:  # noqa: ARG001
    """Drive a dead letter again, or give it up."""
    letters = list(world.history.groups.letters.values())
    if letters:
        letter, by = world.chance.choice(letters), f"redrive {world.history.groups.event()}"
        drives = world.chance.random() < 0.7
        again = world.chance.random() < 0.5
        _suffered(
            lambda: (
                store.chains.redrive(letter.group, letter.id, by=by, retry_queues=2, again=again)
                if drives
                else store.chains.discard(letter.group, letter.id, by=by)
            )
        )


def _changed_retry(world: "World", store: Store, consuming: Consuming) -> None:  # noqa: ARG001
    """Cancel a waiting retry, or move it."""
    message_id = world.chance.choice(world.ids[-30:]) if world.ids else None
    if message_id is None:
        return
    by, delay_ms = f"retry {world.history.groups.event()}", world.chance.choice((0, 2_000, 90_000))
    due_ms = world.clock.now_ms() + delay_ms
    cancels = world.chance.random() < 0.4

    def change() -> None:
        decision = (
            store.chains.cancel_retry(RETRYING, message_id, by=by)
            if cancels
            else store.chains.move_retry(RETRYING, message_id, due_ms, by=by)
        )
        world.history.groups.changed[by] = decision.outcome

    _suffered(change)


def _suffered(ask: Callable[[], Any]) -> None:
    """Ask, and bear what the machine refuses."""
    try:
        ask()
    except (*REFUSALS, *UNCERTAIN):
        return


_ASKED: dict[str, Callable[..., list[Any]]] = {
    "ack": lambda _w, c, group, shown, now_ms, _l: c.ack(group, shown, now_ms),
    "extend": lambda _w, c, group, shown, now_ms, lease_ms: c.leases.extend(
        group, shown, lease_ms=lease_ms, now_ms=now_ms
    ),
    "release": lambda _w, c, group, shown, _n, _l: c.leases.release(group, shown),
    "retry": lambda w, c, group, shown, now_ms, _l: c.failing.fail(
        group, shown, w.rule, Verdict("it failed"), now_ms
    ),
    "dead": lambda w, c, group, shown, now_ms, _l: c.failing.fail(
        group, shown, w.rule, dead_letter("never"), now_ms
    ),
}
_DEEDS: dict[str, tuple[Callable[["World", Store, Consuming], None], int]] = {
    "receive": (_received, 8),
    "ack": (_said("ack"), 6),
    "extend": (_said("extend"), 2),
    "release": (_said("release"), 2),
    "retry": (_said("retry"), 4),
    "dead": (_said("dead"), 2),
    "redrive": (_redriven, 2),
    "change a retry": (_changed_retry, 2),
}
