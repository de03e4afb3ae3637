"""Records, units, slots and entries as plain values, under the names that RocketMQ's tools use."""

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np

from queues.store.crc import crc32
from queues.store.errors import BodyUnreadable
from queues.store.hosts import encode_host
from queues.store.indexfile import FIRST_COUNT
from queues.store.inspection.entries import open_indexes
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout, check_directories, check_segments
from queues.store.inspection.log import LogWalk
from queues.store.inspection.timer import TimerFiles, check_timer_files
from queues.store.inspection.units import BLANK_SIZE, BLOCK_UNITS, EXTENDED_MAX, QueueFiles
from queues.store.record import Record, decode_record


def dump_records(layout: Layout, report: Report) -> Iterator[dict[str, Any]]:
    """Give every readable record in log order; damage is taken down in the report."""
    check_segments(layout, report)
    walk = LogWalk(layout, report)
    for view, at, size, _ in walk.records():
        yield record_values(decode_record(view[at : at + size], verify=False))
    if layout.closed:
        walk.take_tail()


def record_values(record: Record) -> dict[str, Any]:
    """Return one record as plain values; ``sys_flag`` as stored, the body decompressed."""
    offset_id = offset_message_id(record.store_host, record.log_offset)
    values: dict[str, Any] = {
        "topic": record.topic,
        "queue": record.queue_id,
        "queue_offset": record.queue_offset,
        "commitlog_offset": record.log_offset,
        "store_size": record.size,
        "sys_flag": record.sys_flag,
        "flag": record.flag,
        "born_timestamp": record.born_ms,
        "store_timestamp": record.store_ms,
        "born_host": f"/{record.born_host}",
        "store_host": f"/{record.store_host}",
        "reconsume_times": record.reconsume_times,
        "prepared_transaction_offset": record.prepared_offset,
        "body_crc": record.body_crc,
        "msg_id": record.unique_id or offset_id,
        "offset_msg_id": offset_id,
        "properties": record.properties,
    }
    try:
        body = record.decoded_body()
    except BodyUnreadable as error:
        return values | {"body_base64": None, "body_error": error.reason}
    return values | {
        "body_length": len(body),
        "decoded_body_crc32": crc32(body),
        "body_base64": base64.b64encode(body).decode("ascii"),
    }


def offset_message_id(store_host: str, log_offset: int) -> str:
    """Return RocketMQ's offset message id: store host and log offset in hexadecimal."""
    return (encode_host(store_host) + log_offset.to_bytes(8, "big")).hex().upper()


def dump_units(layout: Layout, report: Report) -> Iterator[dict[str, Any]]:
    """Give every unit of every ConsumeQueue, blanks included."""
    files = QueueFiles(layout)
    check_directories(layout, report)
    files.check(report)
    try:
        for topic, queue in files.queues():
            first, end = files.bounds(topic, queue)
            for start in range(first, end, BLOCK_UNITS):
                units = files.read(topic, queue, start, min(BLOCK_UNITS, end - start))
                for number, (offset, size, code) in enumerate(units.tolist(), start):
                    yield {
                        "topic": topic,
                        "queue": queue,
                        "queue_offset": number,
                        "commitlog_offset": offset,
                        "size": size,
                        "tags_code": code,
                        "blank": size == BLANK_SIZE,
                        "extended": code <= EXTENDED_MAX,
                    }
    finally:
        files.close()


def dump_slots(layout: Layout, report: Report) -> Iterator[dict[str, Any]]:
    """Give every used slot of the timer wheel with its units, newest first."""
    files = TimerFiles(layout)
    check_timer_files(files, layout, report)
    for number in files.used_slots().tolist():
        assert files.slots is not None
        slot = files.slots[number]
        yield {
            "slot": number,
            "time_ms": int(slot["time"]) * files.precision_ms,
            "first": int(slot["first"]),
            "last": int(slot["last"]),
            "count": int(slot["count"]),
            "units": [_unit_values(position, unit) for position, unit in files.chain(slot)],
        }


def dump_entries(layout: Layout, report: Report) -> Iterator[dict[str, Any]]:
    """Give every entry of every index file that can be looked at; take down the others."""
    for note in open_indexes(layout, report):
        file = note.file
        for number in range(FIRST_COUNT, file.count):
            entry = file.entries[number]
            yield {
                "file": note.path.name,
                "entry": number,
                "key_hash": int(entry["key_hash"]),
                "commitlog_offset": int(entry["log_offset"]),
                "time_ms": file.begin_ms + int(entry["seconds"]) * 1000,
                "previous": int(entry["previous"]),
            }


def _unit_values(position: int, unit: np.void) -> dict[str, int]:
    return {
        "position": position,
        "magic": int(unit["magic"]),
        "written_ms": int(unit["written_ms"]),
        "delay_ms": int(unit["delay_ms"]),
        "commitlog_offset": int(unit["log_offset"]),
        "size": int(unit["record_size"]),
        "topic_hash": int(unit["topic_hash"]),
    }
