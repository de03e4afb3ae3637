"""What the processes of a simulated world do: clients, the loops, housekeeping.

Each opens the store for itself, as real processes do. Clients take down every question and its
answer, with the ends of the log that readers could see before and after.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from queues.store import Outgoing, Store
from queues.store.errors import (
    DiskFull,
    StoreClosing,
    StoreError,
    StoreFailed,
    StoreFull,
)
from scheduler.levels.offsets import DelayOffsets
from scheduler.levels.step import LevelsStep
from tests.simulation.turns import Process

if TYPE_CHECKING:
    from tests.simulation.world import World

TOPICS = ("orders", "mail")
QUEUES = 2
#: What a client may be told instead of an answer.
REFUSALS = (StoreFull, DiskFull)
UNCERTAIN = (StoreFailed, StoreClosing, OSError)


@dataclass(slots=True)
class Asked:
    """A question of a client and what it was told."""

    what: str
    #: `PD_BY` of what it may have written.
    by: str
    #: The messages that it is about.
    ids: tuple[str, ...]
    #: The visible end of the log when it was asked.
    start: int
    #: The visible end when it was answered; None if nobody lived to hear it.
    end: int | None = None
    #: An outcome, a view, `stored`, `refused`, or `uncertain`.
    answer: Any = None


def client(world: "World", process: Process) -> None:
    """Send, cancel, restore, move, look, park and release, at random."""
    store = world.open_store(process)
    chance = world.chance
    while not world.leaving(process):
        kind = chance.choices(list(_QUESTIONS), [weight for _, weight in _QUESTIONS.values()])[0]
        _QUESTIONS[kind][0](world, store)
        process.pause()
    store.close()


def _ask(world: "World", what: str, ids: tuple[str, ...], question: Callable[[str], Any]) -> None:
    by = f"op{world.history.groups.event()}"
    asked = Asked(what, by, ids, world.history.visible())
    world.asked.append(asked)
    try:
        asked.answer = question(by)
    except REFUSALS:
        asked.answer = "refused"
    except UNCERTAIN:
        asked.answer = "uncertain"
    asked.end = world.history.visible()


def _send(world: "World", store: Store) -> None:
    chance, now_ms = world.chance, world.clock.now_ms()
    count = chance.choice((1, 1, 1, 2, 5, 20))
    topic = chance.choice(TOPICS)
    ids = tuple(store.new_ids(topic, now_ms, count))
    kind = chance.choice(("level", "timed", "timed", "immediate", "mixed"))
    messages = []
    for message_id in ids:
        own = chance.choice(("level", "timed", "immediate")) if kind == "mixed" else kind
        level = chance.randint(1, world.level_count) if own == "level" else 0
        due_ms = now_ms + _delay_ms(world) if own == "timed" else None
        messages.append(
            Outgoing(
                topic=topic, queue_id=chance.randrange(QUEUES), unique_id=message_id,
                body=chance.randbytes(chance.choice((0, 10, 200, 2000))), born_ms=now_ms,
                tag=chance.choice((None, "a", "b")), keys=(f"k{chance.randrange(5)}",),
                properties={"p": "v"} if chance.random() < 0.3 else {},
                level=level, due_ms=due_ms, by="sender" if chance.random() < 0.5 else None,
            )
        )  # fmt: skip
    world.ids.extend(ids)

    def send(_: str) -> str:
        store.send(messages)
        return "stored"

    _ask(world, "send", ids, send)


def _delay_ms(world: "World") -> int:
    """A delay: near, in one second with others, far, beyond the wheel."""
    chance = world.chance
    return chance.choice(
        (
            chance.randint(-5, 2_000),
            chance.randint(1, 60_000),
            1_000 * chance.randint(1, 20),
            chance.randint(1, world.delay_ms_max),
        )
    )


def _some_id(world: "World") -> str | None:
    recent = world.ids[-30:]
    return world.chance.choice(recent) if recent else None


def _change(what: str) -> Callable[["World", Store], None]:
    def ask(world: "World", store: Store) -> None:
        message_id = _some_id(world)
        if message_id is None:
            return
        due_ms = world.clock.now_ms() + (0 if what == "deliver" else _delay_ms(world))

        def question(by: str) -> Any:
            if what in ("move", "deliver"):
                return store.move(message_id, due_ms, by=by).outcome
            return getattr(store, what)(message_id, by=by).outcome

        _ask(world, "move" if what == "deliver" else what, (message_id,), question)

    return ask


def _find(world: "World", store: Store) -> None:
    message_id = _some_id(world)
    if message_id is not None:
        _ask(world, "find", (message_id,), lambda _: store.find(message_id))


def _park(world: "World", store: Store) -> None:
    """What a loop does with a message that can never be handed over."""
    message_id = _some_id(world)
    with contextlib.suppress(*REFUSALS, *UNCERTAIN):
        view = store.find(message_id) if message_id else None
        if view is not None and view.held_topic and view.state == "scheduled":
            place = view.held_topic, view.held_queue_id, view.held_offset
            store.park(*place, reason="simulated")


_QUESTIONS: dict[str, tuple[Callable[["World", Store], None], int]] = {
    "send": (_send, 10),
    "cancel": (_change("cancel"), 5),
    "move": (_change("move"), 4),
    "deliver": (_change("deliver"), 2),
    "restore": (_change("restore"), 3),
    "release": (_change("release"), 2),
    "find": (_find, 6),
    "park": (_park, 1),
}


def scheduler(world: "World", process: Process) -> None:
    """Run the levels' and the timer's steps, as the holder of both leases."""
    store = world.open_store(process)
    steps = loops_of(world, store)
    for step in steps:
        step.open()
    while not world.leaving(process):
        step = world.chance.choice(steps)
        try:
            step.advance(world.clock.now_ms())
        except (StoreError, OSError) as error:
            world.note(error)
        process.pause()
    for step in steps:
        with contextlib.suppress(StoreError, OSError):
            step.close()
    store.close()


def loops_of(world: "World", store: Store) -> list[Any]:
    """The steps that hand over: of the levels, and of the timer engine that the seed chose."""
    offsets = DelayOffsets(store, store.disk, store.root / "config" / "delayOffset.json")
    levels = LevelsStep(store, level_count=world.level_count, offsets=offsets)
    return [levels, world.make_timer(store)]


def housekeeper(world: "World", process: Process) -> None:
    """Flush, keep house, save what is saved each second."""
    store = world.open_store(process)
    offsets = DelayOffsets(store, store.disk, store.root / "config" / "delayOffset.json")
    consuming = world.open_consuming(store)
    store.keep_leased(consuming.leased_from)
    while not world.leaving(process):
        duty = world.chance.choice(("flush", "house", "house", "offsets", "expire", "save"))
        try:
            if duty == "flush":
                store.flush()
            elif duty == "house":
                store.housekeep(world.clock.now_ms())
            elif duty == "expire":
                consuming.expire(world.clock.now_ms())
            elif duty == "save":
                world.save(consuming.save_offsets)
            else:
                offsets.save()
        except (StoreError, OSError) as error:
            world.note(error)
        process.pause()
    world.save(consuming.close)
    store.close()
