"""The control plane as the path of a message sees it: a snapshot in memory, without SQL.

A snapshot holds every topic, group and live API key. It is taken again when the store's control
generation has moved (each commit of a service raises it, in whichever process) and after five
seconds all the same. An unknown name is asked for by itself before it is refused.
"""

import hashlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from django.db import Error as DatabaseFailure
from django.db.models import Model, QuerySet

from queues import wires
from queues.access import Caller, Patterns
from queues.codes import Code
from queues.limits import CONTROL_CACHE_MS
from queues.models import ApiKey, Group, Topic
from queues.naming import is_name
from queues.problems import Problem
from queues.selectors.keys import quotas_of
from queues.store.consuming import Subscription
from queues.store.members import SEPARATOR
from queues.store.names import RETRY_PREFIX

logger = logging.getLogger(__name__)

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic as it was declared."""

    name: str
    #: Number of queues.
    queues: int
    #: Queue to the first offset that belongs to this topic and not to one deleted before it.
    first_offsets: Mapping[int, int]
    #: Creation, ms since the epoch.
    created_ms: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as it was declared."""

    name: str
    subscriptions: tuple[Subscription, ...]
    mode: str
    ordered: bool
    max_retries: int
    retry_queues: int
    retry_policy: Mapping[str, Any]
    start_from: str
    paused: bool
    #: Creation, ms since the epoch.
    created_ms: int

    @property
    def sources(self) -> tuple[Subscription, ...]:
        """What its consumers receive from: its subscriptions and its retries."""
        if self.mode == Group.Mode.BROADCASTING:
            return self.subscriptions
        return (*self.subscriptions, Subscription(RETRY_PREFIX + self.name))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole control plane at one generation."""

    #: The store's control generation that it was read under.
    generation: int
    #: When it was read, by the monotonic clock.
    read_at_ms: int
    topics: Mapping[str, TopicView]
    groups: Mapping[str, GroupView]
    #: SHA-256 of the secret to what its bearer may do.
    callers: Mapping[bytes, Caller]


class ControlCache:
    """Keeps the snapshot of one process fresh."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._loading = threading.Lock()

    def current(self) -> Snapshot:
        """A snapshot that shows every change committed before this call."""
        snapshot = self._snapshot
        wiring = wires.wiring()
        generation = wiring.get_store().generation()
        if snapshot is None or snapshot.generation != generation:
            return self._load_at_least(generation)
        now_ms = wiring.get_clock().monotonic_ms()
        if now_ms - snapshot.read_at_ms > CONTROL_CACHE_MS:
            return self._refresh(snapshot)
        return snapshot

    def forget(self) -> None:
        """Start anew, as tests do between two databases."""
        self._snapshot = None

    def _load_at_least(self, generation: int) -> Snapshot:
        with self._loading:
            snapshot = self._snapshot
            if snapshot is None or snapshot.generation < generation:
                snapshot = self._snapshot = _load()
            return snapshot

    def _refresh(self, stale: Snapshot) -> Snapshot:
        """Read again; one thread does, the others go on with what there is."""
        if not self._loading.acquire(blocking=False):
            return stale
        try:
            self._snapshot = _load()
        except (DatabaseFailure, Problem):
            logger.exception("The control plane cannot be read; the last known one stays in use.")
            now_ms = wires.wiring().get_clock().monotonic_ms()
            self._snapshot = replace(stale, read_at_ms=now_ms)  # Not tried by every request.
            return stale
        finally:
            self._loading.release()
        return self._snapshot


#: The cache of this process.
cache = ControlCache()


def get_topic(name: str) -> TopicView:
    """The topic; raises `topic_not_found`."""
    topic = find_topic(name)
    if topic is None:
        raise Problem(Code.TOPIC_NOT_FOUND, f"There is no topic {name[:127]!r}.")
    return topic


def find_topic(name: str) -> TopicView | None:
    """The topic, or None; the database is asked before None is answered."""
    topic = cache.current().topics.get(name)
    if topic is None and is_name(name):
        row = _row(Topic.objects.filter(name=name))
        topic = None if row is None else _topic_view(row)
    return topic


def find_group(name: str) -> GroupView | None:
    """The group, or None; the database is asked before None is answered."""
    group = cache.current().groups.get(name)
    if group is None and is_name(name):
        row = _row(Group.objects.filter(name=name))
        group = None if row is None else _group_view(row)
    return group


def is_changed(name: str, sources: Sequence[Subscription]) -> bool:
    """Whether a group, or that of a member, is paused, gone, or has other sources than these.

    False while that cannot be read.
    """
    try:
        group = cache.current().groups.get(name.partition(SEPARATOR)[0])
    except (DatabaseFailure, Problem):
        return False
    return group is None or group.paused or tuple(sources) != group.sources


def is_ordered(name: str) -> bool:
    """Whether a group, by its name or a consumer's of it, is ordered."""
    group = cache.current().groups.get(name.partition(SEPARATOR)[0])
    return group is not None and group.ordered


def get_group(name: str) -> GroupView:
    """The group; raises `group_not_found`; the database is asked before."""
    group = find_group(name)
    if group is None:
        raise Problem(Code.GROUP_NOT_FOUND, f"There is no group {name[:127]!r}.")
    return group


def groups_of_topic(topic: str) -> list[GroupView]:
    """The groups that subscribe to a topic, by name."""
    groups = cache.current().groups
    return [
        group
        for _, group in sorted(groups.items())
        if any(subscription.topic == topic for subscription in group.subscriptions)
    ]


def find_caller(secret: str, *, now_ms: int) -> Caller | None:
    """Who bears this key; None for an unknown, expired or revoked one."""
    caller = cache.current().callers.get(hash_secret(secret))
    if caller is not None and caller.until_ms is not None and caller.until_ms <= now_ms:
        return None
    return caller


def hash_secret(secret: str) -> bytes:
    """What is kept of a secret: it is long and random, so one SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).digest()


def _row(found: QuerySet[Row]) -> Row | None:
    try:
        return found.first()
    except DatabaseFailure as failure:
        raise Problem(Code.CONTROL_UNAVAILABLE, "Try again in a moment.") from failure


def _load() -> Snapshot:
    wiring = wires.wiring()
    # Read first: a change committed after this is seen as a newer generation and read again.
    generation = wiring.get_store().generation()
    try:
        topics = {topic.name: _topic_view(topic) for topic in Topic.objects.all()}
        groups = {group.name: _group_view(group) for group in Group.objects.all()}
        callers = {
            secret_hash: caller
            for key in ApiKey.objects.filter(revoked_at=None)
            for secret_hash, caller in _callers(key)
        }
    except DatabaseFailure as failure:
        raise Problem(Code.CONTROL_UNAVAILABLE, "Try again in a moment.") from failure
    return Snapshot(
        generation=generation,
        read_at_ms=wiring.get_clock().monotonic_ms(),
        topics=topics,
        groups=groups,
        callers=callers,
    )


def _topic_view(topic: Topic) -> TopicView:
    return TopicView(
        name=topic.name,
        queues=topic.queues,
        first_offsets={int(queue): offset for queue, offset in topic.first_offsets.items()},
        created_ms=round(topic.created_at.timestamp() * 1000),
    )


def _group_view(group: Group) -> GroupView:
    return GroupView(
        name=group.name,
        subscriptions=tuple(
            Subscription(topic=one["topic"], tags=one["tags"]) for one in group.subscriptions
        ),
        mode=group.mode,
        ordered=group.ordered,
        max_retries=group.max_retries,
        retry_queues=group.retry_queues,
        retry_policy=group.retry_policy,
        start_from=group.start_from,
        paused=group.paused,
        created_ms=round(group.created_at.timestamp() * 1000),
    )


def _callers(key: ApiKey) -> Iterator[tuple[bytes, Caller]]:
    """The key by its secret, and while it is being rotated by the one before, too."""
    until_ms = _ms(key.expires_at)
    caller = Caller(
        key_id=key.pk,
        by=f"key:{key.name}",
        scopes=frozenset(key.scopes),
        topics=Patterns(key.topic_patterns),
        groups=Patterns(key.group_patterns),
        quotas=quotas_of(key),
        until_ms=until_ms,
    )
    yield bytes.fromhex(key.secret_sha256), caller
    previous_until_ms = _ms(key.previous_until)
    if previous_until_ms is not None:
        least_ms = previous_until_ms if until_ms is None else min(until_ms, previous_until_ms)
        yield bytes.fromhex(key.previous_sha256), replace(caller, until_ms=least_ms)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
