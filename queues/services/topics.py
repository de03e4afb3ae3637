"""What can be done with topics: declare, find or make for a send, delete."""

import itertools
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from queues import wires
from queues.codes import Code
from queues.limits import TOPIC_QUEUES_DEFAULT, TOPIC_QUEUES_MAX
from queues.models import Operation, Topic
from queues.naming import check_topic_name
from queues.problems import Problem
from queues.selectors import control, scheduled
from queues.selectors.control import TopicView
from queues.services.audit import now, record_change
from queues.services.purging import purge_topic
from queues.store.hashes import java_hash

#: Where the next message without a queue of its own goes; each process begins anew.
_turns = itertools.count()
#: When a topic was made that will be.
_NOT_MADE = -1


@dataclass(frozen=True, slots=True)
class Declared:
    """What became of a declaration."""

    topic: TopicView
    #: It was not there before.
    created: bool


def declare_topic(*, name: str, queues: int | None, by: str) -> Declared:
    """Make the topic, or give it more queues; raises `queues_fewer`, `name_…`, `out_of_bounds`."""
    check_topic_name(name)
    if queues is not None and not 1 <= queues <= TOPIC_QUEUES_MAX:
        detail = f"A topic has 1 to {TOPIC_QUEUES_MAX} queues."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/queues")
    with transaction.atomic():
        topic = Topic.objects.select_for_update().filter(name=name).first()
        created = topic is None
        if topic is None:
            _create(name, queues or TOPIC_QUEUES_DEFAULT, by=by)
        elif queues is not None and queues != topic.queues:
            _widen(topic, queues, by=by)
    return Declared(control.get_topic(name), created=created)


def topic_for_send(name: str) -> TopicView:
    """The topic; an unknown one as it will be made (`made`) where auto-creation is on."""
    topic = control.cache.current().topics.get(name) or control.find_topic(name)
    if topic is not None:
        return topic
    check_topic_name(name)
    if not wires.wiring().get_rules().auto_create_topics:
        return control.get_topic(name)
    return TopicView(name, TOPIC_QUEUES_DEFAULT, {}, _NOT_MADE)


def made(topic: TopicView) -> TopicView:
    """The topic of a send that is about to be stored, made if it is not there."""
    if topic.created_ms != _NOT_MADE:
        return topic
    with transaction.atomic():
        _create(topic.name, TOPIC_QUEUES_DEFAULT, by="auto-creation")
    return control.get_topic(topic.name)


def choose_queue(topic: TopicView, *, queue: int | None, sharding_key: str | None) -> int:
    """The queue that the sender named, that the key falls into, or the next in turn."""
    if queue is not None:
        if sharding_key is not None:
            raise Problem(
                Code.QUEUE_CONFLICT, "Give one of queue and sharding_key.", pointer="/queue"
            )
        if not 0 <= queue < topic.queues:
            detail = f"The queues of {topic.name} are 0 to {topic.queues - 1}."
            raise Problem(Code.QUEUE_UNKNOWN, detail, pointer="/queue")
        return queue
    if sharding_key is not None:
        return (java_hash(sharding_key) & 0x7FFF_FFFF) % topic.queues
    return next(_turns) % topic.queues


def delete_topic(*, name: str, purge: bool, by: str) -> Operation | None:
    """Delete the topic; what still waits for it is refused (`not_empty`) or cancelled.

    Returns the operation that cancels, where that takes long.
    """
    topic = control.get_topic(name)
    waiting = scheduled.count_waiting(topic.name)
    if waiting and not purge:
        raise Problem(
            Code.NOT_EMPTY,
            f"{waiting} messages wait to be delivered to it; ?purge=true cancels them.",
            extra={"counts": {"scheduled": waiting}},
        )
    with transaction.atomic():
        Topic.objects.filter(name=name).delete()
        record_change(
            by=by,
            action="topic.delete",
            subject=name,
            detail={"cancelled": waiting},
            before={"queues": topic.queues},
        )
    # Nothing can be sent to it any more; what was sent until now is found by the second look.
    return purge_topic(name, by=by) if purge else None


def cancel_waiting(topic: str, *, by: str) -> Operation | None:
    """Cancel every message that waits for the topic: at once, or by the operation returned."""
    return purge_topic(topic, by=by)


def _create(name: str, queues: int, *, by: str) -> None:
    store = wires.wiring().get_store()
    # Queues of a topic that had this name before: its messages are not this one's.
    first_offsets = {
        str(queue): bounds.max_offset
        for queue in store.queue_ids(name)
        if (bounds := store.queue_bounds(name, queue)).max_offset
    }
    try:
        with transaction.atomic():
            Topic.objects.create(
                name=name, queues=queues, first_offsets=first_offsets, created_at=now()
            )
    except IntegrityError:
        return  # Another process made it at the same moment.
    record_change(by=by, action="topic.create", subject=name, after={"queues": queues})


def _widen(topic: Topic, queues: int, *, by: str) -> None:
    if queues < topic.queues:
        detail = f"{topic.name} has {topic.queues} queues and cannot have fewer."
        raise Problem(Code.QUEUES_FEWER, detail, extra={"queues": topic.queues})
    before = topic.queues
    topic.queues = queues
    topic.save(update_fields=["queues"])
    record_change(
        by=by,
        action="topic.change",
        subject=topic.name,
        before={"queues": before},
        after={"queues": queues},
    )
