"""What a broker wants to find beside the log: topics, groups, offsets, and its own settings.

All are strict JSON, which RocketMQ reads. ConsumeQueues, index and wheel are not here: the empty
``abort`` file makes the broker build them from the log.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from queues.store.configfiles import save_with_backup
from queues.store.disk import Disk
from queues.store.export.destination import Destination, ExportedGroup
from queues.store.export.liveness import Line
from queues.store.names import DEAD_LETTER_PREFIX, RETRY_PREFIX

#: The slot widths that RocketMQ knows, ms.
PRECISIONS_MS: Final = (100, 200, 500, 1000)
#: What RocketMQ takes for names, and the dot, because a broker's name is its host's by default.
_NAME: Final = re.compile(r"[%|A-Za-z0-9_.-]{1,127}", re.ASCII)
_READ_AND_WRITE: Final = 6
_HOUR_MS: Final = 3_600_000
_VERSION: Final = {"counter": 1, "stateVersion": 0, "timestamp": 0}

Lines = Mapping[tuple[str, int], Line]


def broker_precision_ms(precision_ms: int) -> int:
    """The width of a slot at the broker: ours, if RocketMQ knows it."""
    return precision_ms if precision_ms in PRECISIONS_MS else 1000


def is_broker_name(name: str) -> bool:
    """Whether a broker or a cluster can be called so."""
    return _NAME.fullmatch(name) is not None


def write_broker_files(disk: Disk, target: Path, destination: Destination, lines: Lines) -> None:
    """Write ``config/*.json``, ``broker.conf`` and last ``abort``."""
    config = target / "config"
    disk.make_dirs(config)
    files = {
        "topics.json": {"dataVersion": _VERSION, "topicConfigTable": _topics(destination, lines)},
        "subscriptionGroup.json": {
            "dataVersion": _VERSION,
            "forbiddenTable": {},
            "subscriptionGroupTable": {
                name: _group(name, group) for name, group in sorted(destination.groups.items())
            },
        },
        "consumerOffset.json": {
            "dataVersion": _VERSION,
            "offsetTable": _offsets(destination, lines),
        },
        "delayOffset.json": {
            "dataVersion": _VERSION,
            "offsetTable": {str(level): 0 for level in range(1, destination.levels.max_level + 1)},
        },
    }
    for name, value in files.items():
        save_with_backup(disk, config / name, value)
    disk.replace(target / "broker.conf", broker_conf(target, destination).encode())
    disk.replace(target / "abort", b"")


def broker_conf(target: Path, destination: Destination) -> str:
    """The broker's settings that must agree with what was exported."""
    longest_s = -(-destination.delay_ms_max // 1000)
    hours = max(1, -(-destination.retention_ms // _HOUR_MS))
    pairs = {
        "brokerClusterName": destination.cluster,
        "brokerName": destination.broker,
        "brokerId": 0,
        "brokerRole": "ASYNC_MASTER",
        "storePathRootDir": target,
        "storePathCommitLog": target / "commitlog",
        "flushDiskType": "SYNC_FLUSH" if destination.sync_flush else "ASYNC_FLUSH",
        "fileReservedTime": hours,
        "messageDelayLevel": destination.levels.text,
        "timerWheelEnable": "true",
        "timerPrecisionMs": broker_precision_ms(destination.precision_ms),
        "timerMaxDelaySec": longest_s,
        "timerEnableRetryUntilSuccess": "true",
    }
    told = "".join(f"{name}={_escaped(str(value))}\n" for name, value in pairs.items())
    return (
        "# Written by `manage.py rocketmq_export`; start a broker with it:\n"
        "#   mqbroker -c broker.conf -n <name server>\n"
        "# If this directory moves, change both storePath lines.\n" + told
    )


def _escaped(value: str) -> str:
    """A value as Java's `Properties` reads it: what is not printable ASCII by UTF-16 number."""
    return "".join(_escaped_one(character) for character in value)


def _escaped_one(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isascii() and character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _topics(destination: Destination, lines: Lines) -> dict[str, Any]:
    queues = {name: topic.queues for name, topic in destination.topics.items()}
    for name, group in destination.groups.items():
        queues[RETRY_PREFIX + name] = group.retry_queues
        queues[DEAD_LETTER_PREFIX + name] = 1
    for topic, queue_id in lines:
        if topic in queues:
            queues[topic] = max(queues[topic], queue_id + 1)
    return {name: _topic(name, count) for name, count in sorted(queues.items())}


def _topic(name: str, queues: int) -> dict[str, Any]:
    return {
        "attributes": {},
        "order": False,
        "perm": _READ_AND_WRITE,
        "readQueueNums": queues,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": 0,
        "writeQueueNums": queues,
    }


def _group(name: str, group: ExportedGroup) -> dict[str, Any]:
    return {
        "attributes": {},
        "brokerId": 0,
        "consumeBroadcastEnable": True,
        "consumeEnable": True,
        "consumeFromMinEnable": True,
        "consumeMessageOrderly": group.ordered,
        "consumeTimeoutMinute": 15,
        "groupName": name,
        "groupRetryPolicy": {"type": "CUSTOMIZED"},
        "groupSysFlag": 0,
        "notifyConsumerIdsChangedEnable": True,
        "retryMaxTimes": group.retries_max,
        "retryQueueNums": group.retry_queues,
        "whichBrokerWhenConsumeSlowly": 1,
    }


def _offsets(destination: Destination, lines: Lines) -> dict[str, dict[str, int]]:
    """Where each group goes on: in every queue of its topics, also where it never came."""
    table: dict[str, dict[str, int]] = {}
    for name, group in sorted(destination.groups.items()):
        if group.broadcasting:
            continue  # Such consumers keep their own offsets.
        for topic in (*group.topics, RETRY_PREFIX + name):
            offsets = {
                str(queue_id): _offset(destination, lines, name, topic, queue_id)
                for queue_id in _queue_ids(destination, lines, topic)
            }
            if offsets:
                table[f"{topic}@{name}"] = offsets
    return table


def _queue_ids(destination: Destination, lines: Lines, topic: str) -> Iterable[int]:
    declared = destination.topics.get(topic)
    found = {queue_id for name, queue_id in lines if name == topic}
    return sorted(found | set(range(declared.queues if declared else 0)))


def _offset(destination: Destination, lines: Lines, group: str, topic: str, queue_id: int) -> int:
    line = lines.get((topic, queue_id))
    floor = destination.floors.get((group, topic, queue_id), 0)
    return 0 if line is None else line.moved(floor)
