"""What must be true of a store whenever nobody is writing, checked against the log alone."""

from queues.store import Store
from queues.store.control import Note, Word
from queues.store.hashes import index_hash, tags_code
from queues.store.limits import SCHEDULE_UNITS
from queues.store.names import JOURNAL_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC, holds_schedule
from queues.store.record import RecordState, check_record, decode_record


def assert_sound(store: Store) -> dict[int, object]:
    """Walk the log and compare everything derived with it; returns the records by log offset.

    It reads the records with the general decoder, not with the code that wrote them.
    """
    words = store._control.words
    assert words[Word.NOTE_STATE] == Note.NONE
    records = _records(store)
    counts: dict[tuple[str, int], int] = {}
    settled: dict[tuple[str, int, int], int] = {}
    for offset, record in records.items():
        key = (record.topic, record.queue_id)
        assert record.queue_offset == counts.get(key, 0), f"queue offsets of {key} have a hole"
        counts[key] = record.queue_offset + 1
        _assert_unit(store, record)
        _assert_indexed(store, record)
        continued = int(record.properties["PD_FROM"][1:])
        if record.properties["PD_FROM"][0] != "N":
            source = records[continued]
            if holds_schedule(source.topic):
                settled[source.topic, source.queue_id, source.queue_offset] = offset
    for (topic, queue_id), count in counts.items():
        bounds = store.queue_bounds(topic, queue_id)
        assert (bounds.min_offset, bounds.max_offset) == (0, count)
    _assert_settled(store, records, settled)
    return dict(records)


def _records(store: Store) -> dict[int, object]:
    log, records = store._log, {}
    position = store._control.words[Word.LOG_MIN]
    while position < store.committed:
        base = log.base_of(position)
        memory = log.memory(base).memory
        found = check_record(memory, position - base, log.segment_bytes, position)
        assert found.state in (RecordState.WHOLE, RecordState.FILLER), (position, found)
        if found.state is RecordState.WHOLE:
            records[position] = decode_record(log.read(position, found.size))
        position += found.size
    assert position == store.committed
    base = log.base_of(position)
    if base in log.bases():
        rest = log.memory(base).memory[position - base :]
        assert not rest.strip(b"\0"), "something lies behind the end of the log"
    return records


def _assert_unit(store: Store, record: object) -> None:
    unit = store.read_units(record.topic, record.queue_id, record.queue_offset, 1)[0]
    assert (unit["log_offset"], unit["size"]) == (record.log_offset, record.size)
    if record.topic == SCHEDULE_TOPIC:
        assert unit["tags_code"] == int(record.properties["PD_DUE"])
        delay = store.settings.levels.delay_ms(int(record.properties["DELAY"]))
        assert unit["tags_code"] == record.store_ms + delay
    else:
        assert unit["tags_code"] == tags_code(record.tag)


def _assert_indexed(store: Store, record: object) -> None:
    keys = (record.unique_id, *(() if record.topic == JOURNAL_TOPIC else record.keys))
    for key in keys:
        found = store._index.lookup(index_hash(record.topic, key), limit=100_000)
        assert found.count(record.log_offset) == 1, (record.topic, key, found)


def _assert_settled(
    store: Store, records: dict[int, object], settled: dict[tuple[str, int, int], int]
) -> None:
    for record in records.values():
        if not holds_schedule(record.topic):
            continue
        at = record.queue_offset
        row = store.schedule(record.topic, record.queue_id, at, at + 1)
        assert row.due_ms[0] == int(record.properties["PD_DUE"])
        assert row.settled[0] == settled.get((record.topic, record.queue_id, at), 0)
        topic = record.properties.get("REAL_TOPIC")
        assert store.topic_name(int(row.topic_number[0])) == topic
        queue = store._queues.find(record.topic, record.queue_id)
        block = store.outlook._table_of(queue).block(at // SCHEDULE_UNITS)
        of_level = record.topic == TIMER_TOPIC and record.properties["PD_KIND"][0] == "L"
        assert (block[at % SCHEDULE_UNITS, 1] < 0) == of_level
