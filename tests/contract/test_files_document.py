"""`docs/internals/files.md` says what the code does: each table's sizes are the code's."""

import re
from pathlib import Path

import pytest

from queues.store import ledgerentries, queuetable, schedule
from queues.store.checkpoint import StoreCheckpoint
from queues.store.consumequeue import DISK_UNIT
from queues.store.indexfile import ENTRY, HEADER, SLOT
from queues.store.inspection.timer import TIMER_CHECK
from queues.store.record import (
    BODY_AT,
    BODY_CRC_AT,
    BODY_LENGTH_AT,
    BORN_HOST_AT,
    BORN_MS_AT,
    CRC_PROPERTY_BYTES,
    FILLER_BYTES,
    FIXED_BYTES,
    FLAG_AT,
    LOG_OFFSET_AT,
    MAGIC_AT,
    PREPARED_AT,
    QUEUE_ID_AT,
    QUEUE_OFFSET_AT,
    RECONSUME_AT,
    STORE_HOST_AT,
    STORE_MS_AT,
    SYS_FLAG_AT,
    TOTAL_SIZE_AT,
)
from queues.store.timerunits import BLANK, TIMER_UNIT
from queues.store.timerunits import SLOT as WHEEL_SLOT

DOCUMENT = Path(__file__).parents[2] / "docs" / "internals" / "files.md"
CHECKPOINT_FIELDS_BYTES = len(StoreCheckpoint(1, 1, 1, 1, 1).encode().rstrip(b"\0"))
SIZES = {
    "Record": FIXED_BYTES,
    "Property CRC": CRC_PROPERTY_BYTES,
    "Filler": FILLER_BYTES,
    "Unit": DISK_UNIT.itemsize,
    "Index header": HEADER.size,
    "Index slot": SLOT.itemsize,
    "Index entry": ENTRY.itemsize,
    "Wheel slot": WHEEL_SLOT.itemsize,
    "TimerLog unit": TIMER_UNIT.itemsize,
    "TimerLog blank": BLANK.itemsize,
    "Checkpoint": CHECKPOINT_FIELDS_BYTES,
    "Timer checkpoint": TIMER_CHECK.size,
    "Queue table entry": queuetable.ENTRY_BYTES,
    "Schedule table entry": schedule.UNIT_BYTES,
    "Ledger entry": ledgerentries.ENTRY_BYTES,
}
RECORD_PLACES = [
    *(TOTAL_SIZE_AT, MAGIC_AT, BODY_CRC_AT, QUEUE_ID_AT, FLAG_AT, QUEUE_OFFSET_AT, LOG_OFFSET_AT),
    *(SYS_FLAG_AT, BORN_MS_AT, BORN_HOST_AT, STORE_MS_AT, STORE_HOST_AT, RECONSUME_AT),
    *(PREPARED_AT, BODY_LENGTH_AT, BODY_AT),
]
DTYPES = {
    "Unit": DISK_UNIT,
    "Index entry": ENTRY,
    "Wheel slot": WHEEL_SLOT,
    "TimerLog unit": TIMER_UNIT,
    "TimerLog blank": BLANK,
}


def tables() -> dict[str, tuple[int, list[tuple[int, int]]]]:
    """Return the size in each heading, and place and size of each row below it."""
    found = {}
    for section in re.split(r"^### ", DOCUMENT.read_text(), flags=re.MULTILINE)[1:]:
        head = re.match(r"(.+): (\d+) bytes", section)
        assert head, section[:40]
        rows = re.findall(r"^\| (\d+) \| (\d+) \|", section, flags=re.MULTILINE)
        found[head[1]] = (int(head[2]), [(int(at), int(size)) for at, size in rows])
    return found


def test_every_structure_is_described() -> None:
    assert tables().keys() == SIZES.keys()


@pytest.mark.parametrize("name", sorted(SIZES))
def test_a_structure_has_the_size_that_the_document_tells(name: str) -> None:
    told, rows = tables()[name]
    assert told == SIZES[name]
    assert sum(size for _, size in rows) == told
    assert [at for at, _ in rows] == [sum(size for _, size in rows[:n]) for n in range(len(rows))]


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_fields_lie_where_the_document_tells(name: str) -> None:
    dtype = DTYPES[name]
    assert dtype.fields is not None
    places = [(field[1], field[0].itemsize) for field in dtype.fields.values()]
    assert tables()[name][1] == places


def test_the_fields_of_a_record_lie_where_the_document_tells() -> None:
    assert [at for at, _ in tables()["Record"][1]] == [*RECORD_PLACES, BODY_AT + 1]
