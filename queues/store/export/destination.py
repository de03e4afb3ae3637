"""What an export is told, and what it tells afterwards."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from queues.store.levels import LevelTable


@dataclass(frozen=True, slots=True)
class ExportedTopic:
    """A topic that goes along."""

    #: Number of queues.
    queues: int
    #: Queue to the first offset that is this topic's own; those before belong to a deleted one.
    first_offsets: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExportedGroup:
    """A group that goes along."""

    #: The topics that it subscribes to.
    topics: tuple[str, ...] = ()
    broadcasting: bool = False
    ordered: bool = False
    retries_max: int = 16
    retry_queues: int = 1


@dataclass(frozen=True, slots=True)
class Destination:
    """The control plane that goes along, and the broker's names and settings."""

    topics: Mapping[str, ExportedTopic]
    groups: Mapping[str, ExportedGroup]
    #: Group, topic and queue to the offset before which the group has settled everything.
    floors: Mapping[tuple[str, str, int], int]
    levels: LevelTable
    #: Width of a timer slot, ms.
    precision_ms: int = 1000
    #: The longest delay that a sender may ask for, ms.
    delay_ms_max: int = 40 * 86_400_000
    #: How long a broker keeps messages, ms.
    retention_ms: int = 3 * 86_400_000
    sync_flush: bool = False
    broker: str = "broker-a"
    cluster: str = "DefaultCluster"


@dataclass(slots=True)
class Exported:
    """What came of an export."""

    #: Messages that went along: ``ready``, ``retrying``, ``dead``, ``levels``, ``timed``.
    kept: Counter[str] = field(default_factory=Counter)
    #: Records that did not: ``settled``, ``parked``, ``journal``, ``orphaned``, ``expired``.
    left: Counter[str] = field(default_factory=Counter)
    #: Stretches of the log that could not be read.
    damaged: int = 0
    #: Bytes of the fresh log.
    log_bytes: int = 0
