"""The judgement at the end of a world: every answer against the model, and the store against it."""

from collections import Counter
from typing import TYPE_CHECKING

from queues.store import MessageView, Store
from queues.store.control import Word
from queues.store.inspection.verify import verify_store
from tests.simulation.roles import QUEUES, TOPICS, Asked

if TYPE_CHECKING:
    from tests.simulation.world import World

#: What a decision says of the state that it found; `None`: the decision wrote a record itself.
_FOUND = {
    "too_late": ("ready",),
    "already_cancelled": ("cancelled",),
    "cancelled": ("cancelled",),
    "not_cancelled": ("scheduled", "ready", "parked"),
    "not_parked": ("scheduled", "ready", "cancelled"),
}
_WROTE = {"cancelled": "C", "moved": "M", "restored": "S", "released": "S"}


def judge(world: "World", store: Store) -> None:
    """Answers, views and queues must agree with the model."""
    for asked in world.asked:
        _judge_answer(world, asked)
    _judge_views(world, store)
    _judge_queues(world, store)


def inspect(world: "World") -> None:
    """Our own inspection finds nothing wrong with what is on disk."""
    world.history.assert_unchanged()
    _, report = verify_store(world.root)
    assert report.sound, report.findings[:5]


def _judge_answer(world: "World", asked: Asked) -> None:
    messages = world.history.messages
    if asked.answer == "refused":
        wrote = [
            moment
            for message_id in asked.ids
            if message_id in messages
            for moment in messages[message_id].moments
            if asked.what == "send" or moment.by == asked.by
        ]
        assert not wrote, f"{asked} was refused and done all the same: {wrote}"
        return
    if asked.end is None or asked.answer == "uncertain":
        return
    if asked.what == "send":
        for message_id in asked.ids:
            told = messages.get(message_id)
            assert told is not None, f"{asked} was stored, and is lost"
            assert asked.start <= told.moments[0].log_offset < asked.end, asked
        return
    if asked.what == "find":
        _judge_view(world, asked)
    else:
        _judge_decision(world, asked)


def _judge_decision(world: "World", asked: Asked) -> None:
    (message_id,) = asked.ids
    told = world.history.messages.get(message_id)
    if asked.answer in ("not_found", "payload_gone"):
        assert told is None or _may_be_gone(world, asked), asked
        return
    assert told is not None, asked
    assert asked.end is not None
    moments = told.between(asked.start, asked.end)
    wrote = asked.answer == "cancelled" and asked.what == "cancel"
    if wrote or asked.answer in ("moved", "restored", "released"):
        letter = _WROTE[asked.answer]
        mine = [one for one in moments if one.by == asked.by and one.letter == letter]
        assert len(mine) == 1, (asked, moments)
        return
    states = {moment.state for moment in moments}
    assert states & set(_FOUND[asked.answer]), (asked, moments)
    assert not [moment for moment in told.moments if moment.by == asked.by], (asked, moments)


def _judge_view(world: "World", asked: Asked) -> None:
    (message_id,) = asked.ids
    told, view = world.history.messages.get(message_id), asked.answer
    if view is None:
        assert told is None or _may_be_gone(world, asked), asked
        return
    assert isinstance(view, MessageView)
    assert told is not None, asked
    assert asked.end is not None
    seen = {(one.state, one.due_ms, one.version) for one in told.between(asked.start, asked.end)}
    assert view.state == "expired" or (view.state, view.due_ms, view.version) in seen, (
        asked, seen, told.moments,
    )  # fmt: skip


def _may_be_gone(world: "World", asked: Asked) -> bool:
    """Whether a message was not there yet, or had been removed by retention."""
    (message_id,) = asked.ids
    told = world.history.messages[message_id]
    return told.moments[0].log_offset >= asked.start or _is_removed(world, message_id)


def _is_removed(world: "World", message_id: str) -> bool:
    """Whether retention took records of a message that is over."""
    first = world.word(Word.LOG_MIN)
    told = world.history.messages[message_id]
    return told.now.state in ("ready", "cancelled") and told.moments[0].log_offset < first


def _judge_views(world: "World", store: Store) -> None:
    for message_id, told in world.history.messages.items():
        view, now = store.find(message_id), told.now
        if view is None or view.state == "expired":
            assert _is_removed(world, message_id), (message_id, told.moments)
            continue
        found = view.state, view.due_ms, view.version
        assert found == (now.state, now.due_ms, now.version), (message_id, view, told.moments)
    parked = {one for one, told in world.history.messages.items() if told.now.state == "parked"}
    assert {view.id for view in store.parked(limit=100_000)} == parked


def _judge_queues(world: "World", store: Store) -> None:
    """The topics hold each message that is ready once, but for those that retention removed."""
    found: Counter[str] = Counter()
    for topic in TOPICS:
        for queue_id in range(QUEUES):
            bounds = store.queue_bounds(topic, queue_id)
            units = store.read_units(topic, queue_id, bounds.min_offset, bounds.max_offset)
            assert len(units) == bounds.max_offset - bounds.min_offset
            for offset in units["log_offset"].tolist():
                record = store.read_record(offset)
                assert record.topic == topic
                found[record.unique_id or ""] += 1
    ready = {one for one, told in world.history.messages.items() if told.now.state == "ready"}
    assert set(found) <= ready
    assert not [message_id for message_id, count in found.items() if count > 1]
    assert not [one for one in ready - set(found) if not _is_removed(world, one)]
