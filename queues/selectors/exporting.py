"""What the control plane gives an export along: topics, groups, and where the groups stand."""

from typing import Protocol

from queues import wires
from queues.selectors.control import GroupView, cache
from queues.store.export.destination import Destination, ExportedGroup, ExportedTopic
from queues.store.groupoffsets import saved_offsets
from queues.store.levels import LevelTable


class _Configured(Protocol):
    """What is asked of the configuration."""

    @property
    def delay_levels(self) -> str: ...
    @property
    def timer_precision_ms(self) -> int: ...
    @property
    def timer_max_delay_ms(self) -> int: ...
    @property
    def retention_ms(self) -> int: ...
    @property
    def flush(self) -> str: ...


def find_destination(config: _Configured, *, broker: str, cluster: str) -> Destination:
    """The control plane as it is now; the store is opened, and so recovered if need be."""
    wiring = wires.wiring()
    store = wiring.get_store()
    wiring.get_consuming().save_offsets()  # Each second housekeeping does so too.
    snapshot = cache.current()
    return Destination(
        topics={
            name: ExportedTopic(queues=topic.queues, first_offsets=topic.first_offsets)
            for name, topic in snapshot.topics.items()
        },
        groups={name: _group(group) for name, group in snapshot.groups.items()},
        floors={
            (place.group, place.topic, place.queue_id): offset
            for place, offset in saved_offsets(store.disk, store.root).items()
        },
        levels=LevelTable.parse(config.delay_levels),
        precision_ms=config.timer_precision_ms,
        delay_ms_max=config.timer_max_delay_ms,
        retention_ms=config.retention_ms,
        sync_flush=config.flush == "sync",
        broker=broker,
        cluster=cluster,
    )


def _group(group: GroupView) -> ExportedGroup:
    return ExportedGroup(
        topics=tuple(subscription.topic for subscription in group.subscriptions),
        broadcasting=group.mode == "broadcasting",
        ordered=group.ordered,
        retries_max=group.max_retries,
        retry_queues=group.retry_queues,
    )
