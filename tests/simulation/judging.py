"""The judgement at the end of a world: every answer against the model, and the store against it."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from queues.store import MessageView, Store
from queues.store.consuming import Consuming, QueueLag
from queues.store.control import Word
from queues.store.inspection.verify import verify_store
from queues.store.record import decode_record
from tests.simulation import consumers
from tests.simulation.groups import GROUPS, Entry
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
    judge_answers(world)
    _judge_views(world, store)
    _judge_queues(world, store)


def judge_answers(world: "World") -> None:
    """What clients were answered since the last judgement was true."""
    for asked in world.asked:
        _judge_answer(world, asked)
    world.asked.clear()
    _judge_changes_of_retries(world)


def _judge_changes_of_retries(world: "World") -> None:
    """What was said to be changed was changed once, and nothing else."""
    for by, outcome in world.history.groups.changed.items():
        # A hand-over keeps who moved it.
        wrote = [letter for _, letter in world.history.changes.get(by, []) if letter in "CM"]
        wanted = {"cancelled": ["C"], "moved": ["M"]}.get(outcome, [])
        if outcome == "cancelled" and not wrote:
            continue  # A move may be answered so, too: it was cancelled before.
        assert wrote == wanted, (by, outcome, wrote)
    world.history.groups.changed.clear()


def drain(world: "World", store: Store, consuming: Consuming, run_out: Callable[[], None]) -> None:
    """Let both groups take everything, and acknowledge it, until nothing comes any more."""
    groups = world.history.groups
    for _ in range(200):
        consuming.expire(world.clock.now_ms())
        store.flush()
        leases = [
            lease
            for group in GROUPS
            for lease in consumers.receive(world, consuming, group, 10_000, 1_000)
        ]
        for group in GROUPS:
            mine = [lease for lease in leases if lease.entry.group == group]
            consumers.acknowledge(world, consuming, mine)
        run_out()
        lags = [lag for group in GROUPS for lag in _lag(consuming, group)]
        if not any(lag.ready or lag.leased for lag in lags) and not world.history.waiting():
            break
        world.clock.advance(700_000)
        world.latest_ms = max(world.latest_ms, world.clock.now_ms())
    else:
        raise AssertionError("the groups never come to an end")
    groups.judge()


def judge_groups(world: "World", store: Store, consuming: Consuming) -> None:
    """Each message came to its end in each group: acknowledged, dead, cancelled or removed."""
    groups = world.history.groups
    for lease in groups.leases:
        offset = groups.places.get(lease.entry[1:])
        assert offset is not None, f"{lease} of what is in no topic"
        assert lease.record in (None, world.history.record_at(offset)), lease
    first = world.word(Word.LOG_MIN)
    for (topic, queue_id, offset), at in groups.places.items():
        for group in GROUPS:
            entry = Entry(group, topic, queue_id, offset)
            over = entry in groups.tried or entry in groups.chained or at < first
            assert over or not _wants(world, entry, at), f"{entry} at {at} is lost"
    for group in GROUPS:
        for lag in _lag(consuming, group):
            assert (lag.ready, lag.leased) == (0, 0), lag
        kept = {one.id for one in groups.letters.values()
                if one.group == group and one.now in ("dead", "redriven")}  # fmt: skip
        lookup = store.chains.lookup
        found = [lookup.letter_at(group, unit) for unit in lookup.letters(group).units.tolist()]
        assert sorted(kept) == sorted(one.id for one in found if one is not None)


def _lag(consuming: Consuming, group: str) -> list[QueueLag]:
    return consuming.lag(group, consumers.SOURCES[group])


def _wants(world: "World", entry: Entry, offset: int) -> bool:
    """Whether the group subscribes to what lies there."""
    for source in consumers.SOURCES[entry.group]:
        if source.topic == entry.topic:
            tag = decode_record(world.history.record_at(offset), verify=False).tag
            return source.tags == "*" or tag in source.tags.split(" || ")
    return False


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
