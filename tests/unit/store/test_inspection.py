"""Inspecting a store: damage is told with file and offset, and good records behind it stay read."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from queues.store.consumequeue import BLANK_UNIT, UNIT_BYTES
from queues.store.disk import Disk
from queues.store.hashes import index_hashes
from queues.store.indexfile import COUNT_AT, HEADER_BYTES, SLOT_BYTES, IndexFile, index_file_bytes
from queues.store.inspection import runs
from queues.store.inspection.dump import dump_records, dump_units
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import find_layout
from queues.store.inspection.log import LogWalk
from queues.store.inspection.verify import verify_store
from queues.store.record import MAGIC_AT
from queues.store.recordencoding import encode_filler, encode_record

SEGMENT_BYTES = 4096
SLOTS, ENTRIES = 10, 400
BEGIN_MS = 1_700_000_000_000
LONG_TOPIC = "t" * 200


@dataclass(frozen=True, slots=True)
class Made:
    """A store as a broker would have written it."""

    root: Path
    #: Log offset and length of each record.
    places: list[tuple[int, int]]

    def segment(self, offset: int) -> Path:
        return self.root / "commitlog" / f"{offset // SEGMENT_BYTES * SEGMENT_BYTES:020d}"

    def poke(self, offset: int, data: bytes) -> None:
        """Overwrite bytes of the log."""
        poke(self.segment(offset), offset % SEGMENT_BYTES, data)

    def unit_path(self, topic: str = "orders", queue: int = 0) -> Path:
        return self.root / "consumequeue" / topic / str(queue) / f"{0:020d}"


def poke(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def peek(path: Path, at: int, size: int) -> bytes:
    return path.read_bytes()[at : at + size]


#: Topic, queue, hosts and body of each record; what is long or rare is among it.
CONTENT = [
    ("orders", number % 2, "127.0.0.1:1", b"body %d" % number if number % 7 else b"")
    for number in range(60)
]
CONTENT[11] = (LONG_TOPIC, 0, "127.0.0.1:1", b"V2")
CONTENT[23] = ("orders", 1, "[2001:db8::1]:10911", b"IPv6")
CONTENT[37] = ("orders", 1, "127.0.0.1:1", b"x" * 3000)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("store")
    segments: list[bytearray] = [bytearray()]
    places: list[tuple[int, int]] = []
    units: dict[tuple[str, int], bytearray] = {}
    texts: list[str] = []
    for number, (topic, queue, host, body) in enumerate(CONTENT):
        column = units.setdefault((topic, queue), bytearray())
        fields = {
            "topic": topic, "queue_id": queue, "queue_offset": len(column) // UNIT_BYTES,
            "body": body, "born_ms": BEGIN_MS, "store_ms": BEGIN_MS + number * 700,
            "born_host": host, "store_host": host, "property_crc": number % 3 == 0,
            "properties": {"UNIQ_KEY": f"{number:032X}", "WAIT": "true"},
        }  # fmt: skip
        offset = (len(segments) - 1) * SEGMENT_BYTES + len(segments[-1])
        record = encode_record(log_offset=offset, **fields)  # type: ignore[arg-type]
        if len(segments[-1]) + len(record) + 8 > SEGMENT_BYTES:
            segments[-1] += encode_filler(SEGMENT_BYTES - len(segments[-1]))
            segments.append(bytearray())
            offset = (len(segments) - 1) * SEGMENT_BYTES
            record = encode_record(log_offset=offset, **fields)  # type: ignore[arg-type]
        segments[-1] += record
        places.append((offset, len(record)))
        column += offset.to_bytes(8, "big") + len(record).to_bytes(4, "big") + bytes(8)
        texts.append(f"{topic}#{number:032X}")
    write_store(root, segments, units)
    index = Disk().map(
        root / "index" / "20231114221320000",
        size_bytes=index_file_bytes(SLOTS, ENTRIES),
        create=True,
    )
    store_ms = BEGIN_MS + np.arange(len(places), dtype=np.int64) * 700
    offsets = np.array([offset for offset, _ in places], dtype=np.int64)
    IndexFile(index, SLOTS, ENTRIES).append(index_hashes(texts), offsets, store_ms)
    return Made(root, places)


def write_store(
    root: Path, segments: list[bytearray], units: dict[tuple[str, int], bytearray]
) -> None:
    for number, data in enumerate(segments):
        path = root / "commitlog" / f"{number * SEGMENT_BYTES:020d}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data.ljust(SEGMENT_BYTES, b"\0"))
    for (topic, queue), column in units.items():
        path = root / "consumequeue" / topic / str(queue) / f"{0:020d}"
        path.parent.mkdir(parents=True)
        path.write_bytes(column.ljust(60 * UNIT_BYTES, b"\0"))
    (root / "index").mkdir()
    (root / "config").mkdir()


@pytest.fixture
def made(pristine: Made, tmp_path: Path) -> Made:
    root = tmp_path / "store"
    shutil.copytree(pristine.root, root)
    return Made(root, pristine.places)


@pytest.fixture(params=["many at a time", "one by one"])
def _pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "one by one":
        monkeypatch.setattr(runs, "RUN_RECORDS", 0)


def offsets_read(root: Path) -> list[int]:
    return [one["commitlog_offset"] for one in dump_records(find_layout(Disk(), root), Report())]


def findings(root: Path) -> list[tuple[str, int | None, str]]:
    return [(one.path.name, one.offset, one.reason) for one in verify_store(root)[1].findings]


@pytest.mark.usefixtures("_pace")
def test_long_topics_ipv6_hosts_large_bodies_and_fillers_are_read(made: Made) -> None:
    _, report = verify_store(made.root)
    assert report.findings == []
    assert report.counts["records"] == report.counts["units"] == len(CONTENT)
    assert report.counts["entries"] == len(CONTENT)
    assert report.counts["fillers"] == len(list((made.root / "commitlog").iterdir())) - 1 > 0
    bodies = [one["body_length"] for one in dump_records(find_layout(Disk(), made.root), Report())]
    assert bodies == [len(body) for _, _, _, body in CONTENT]


DAMAGES: dict[str, Callable[[Made, int], int]] = {}


def damage(name: str) -> Callable[[Callable[[Made, int], int]], Callable[[Made, int], int]]:
    def keep(do: Callable[[Made, int], int]) -> Callable[[Made, int], int]:
        DAMAGES[name] = do
        return do

    return keep


@damage("a byte of the body")
def _(made: Made, number: int) -> int:
    made.poke(made.places[number][0] + 90, b"\xff")
    return 1


@damage("the magic")
def _(made: Made, number: int) -> int:
    made.poke(made.places[number][0] + MAGIC_AT, b"\0\0\0\0")
    return 1


@damage("the size")
def _(made: Made, number: int) -> int:
    made.poke(made.places[number][0], b"\x7f\xff\xff\xff")
    return 1


@damage("its own offset")
def _(made: Made, number: int) -> int:
    made.poke(made.places[number][0] + 28, b"\1")
    return 1


@damage("a hole in the properties")
def _(made: Made, number: int) -> int:
    offset, size = made.places[number]
    made.poke(offset + size - 12, bytes(5))
    return 1


@damage("a hole over three records")
def _(made: Made, number: int) -> int:
    begin, (last, size) = made.places[number][0], made.places[number + 2]
    made.poke(begin, bytes(last + size - begin))
    return 3


@pytest.mark.usefixtures("_pace")
@pytest.mark.parametrize("name", sorted(DAMAGES))
@pytest.mark.parametrize("number", [0, 5, 12, 40])
def test_a_damaged_record_is_told_with_file_and_offset_and_the_others_stay_readable(
    made: Made, name: str, number: int
) -> None:
    lost = DAMAGES[name](made, number)
    all_offsets = [offset for offset, _ in made.places]
    damaged = all_offsets[number : number + lost]
    assert offsets_read(made.root) == [one for one in all_offsets if one not in damaged]
    found = findings(made.root)
    place = (made.segment(damaged[0]).name, damaged[0] % SEGMENT_BYTES)
    assert place in [(path, at) for path, at, _ in found]


@pytest.mark.usefixtures("_pace")
def test_a_damaged_last_record_of_a_closed_store_is_damage(made: Made) -> None:
    offset, size = made.places[-1]
    made.poke(offset + size - 5, bytes(5))
    assert (made.segment(offset).name, offset % SEGMENT_BYTES) in [
        found[:2] for found in findings(made.root)
    ]


@pytest.mark.usefixtures("_pace")
def test_an_unfinished_end_of_a_killed_brokers_log_is_its_ordinary_state(made: Made) -> None:
    (made.root / "abort").touch()
    offset, size = made.places[-1]
    made.poke(offset + size - 5, bytes(5))
    topic, queue, _, _ = CONTENT[-1]
    path = made.unit_path(topic, queue)
    units = sum(one[:2] == (topic, queue) for one in CONTENT)
    at = (units - 1) * UNIT_BYTES
    told = findings(made.root)
    assert any(place == offset % SEGMENT_BYTES for _, place, _ in told), "a unit knew the record"
    poke(path, at, bytes(UNIT_BYTES))
    index = next((made.root / "index").iterdir())
    index.unlink()
    layout, report = verify_store(made.root)
    assert report.findings == []
    assert "unfinished" in report.notes[0]
    assert not layout.closed


def test_records_that_a_running_broker_has_not_dispatched_are_no_damage(made: Made) -> None:
    (made.root / "abort").touch()
    next((made.root / "index").iterdir()).unlink()
    for queue in (0, 1):
        units = sum(one[:2] == ("orders", queue) for one in CONTENT)
        poke(made.unit_path("orders", queue), (units - 3) * UNIT_BYTES, bytes(3 * UNIT_BYTES))
    _, report = verify_store(made.root)
    assert report.findings == []
    assert report.counts["undispatched"] == 6
    (made.root / "abort").unlink()
    assert len(findings(made.root)) == 6


def test_an_empty_last_segment_is_the_logs_end(made: Made) -> None:
    count = len(list((made.root / "commitlog").iterdir()))
    (made.root / "commitlog" / f"{count * SEGMENT_BYTES:020d}").touch()
    assert findings(made.root) == []


def test_a_segment_of_a_wrong_length_is_told(made: Made) -> None:
    path = made.segment(SEGMENT_BYTES)
    with path.open("r+b") as file:
        file.truncate(SEGMENT_BYTES - 100)
    assert path.name in [name for name, _, _ in findings(made.root)]


def test_a_missing_segment_is_told(made: Made) -> None:
    made.segment(SEGMENT_BYTES).unlink()
    reasons = [reason for _, _, reason in findings(made.root)]
    assert any("missing" in reason for reason in reasons)


def test_units_of_records_that_retention_removed_are_no_damage(made: Made) -> None:
    made.segment(0).unlink()
    _, report = verify_store(made.root)
    assert report.findings == []
    gone = sum(offset < SEGMENT_BYTES for offset, _ in made.places)
    assert report.counts["expired_units"] == gone
    assert report.counts["expired_entries"] == gone


@pytest.mark.parametrize(
    ("at", "data", "word"),
    [
        (0, b"\xff", "the unit says"),
        (8, b"\xff", "the unit says"),
        (12, b"\x01", "tags code"),
        (0, bytes(20), "missing"),
    ],
)
def test_a_damaged_unit_is_told_with_file_and_offset(
    made: Made, at: int, data: bytes, word: str
) -> None:
    poke(made.unit_path(), 5 * UNIT_BYTES + at, data)
    (finding,) = findings(made.root)
    assert finding[1] == 5 * UNIT_BYTES
    assert word in finding[2]


def test_a_unit_that_leads_to_no_record_is_told(made: Made) -> None:
    count = sum(one[:2] == ("orders", 0) for one in CONTENT)
    poke(made.unit_path(), count * UNIT_BYTES, peek(made.unit_path(), 0, UNIT_BYTES))
    (finding,) = findings(made.root)
    assert finding[1] == count * UNIT_BYTES


def test_blank_units_stand_for_no_record(made: Made) -> None:
    path = made.root / "consumequeue" / "later" / "0" / f"{0:020d}"
    path.parent.mkdir(parents=True)
    path.write_bytes((BLANK_UNIT * 3).ljust(60 * UNIT_BYTES, b"\0"))
    _, report = verify_store(made.root)
    assert report.findings == []
    assert report.counts["blank_units"] == 3
    blanks = [
        unit for unit in dump_units(find_layout(Disk(), made.root), Report()) if unit["blank"]
    ]
    assert [unit["queue_offset"] for unit in blanks] == [0, 1, 2]


def test_an_address_in_a_consume_queue_ext_is_recognised(made: Made) -> None:
    poke(made.unit_path(), 5 * UNIT_BYTES + 12, (-(2**63) + 4096).to_bytes(8, "big", signed=True))
    _, report = verify_store(made.root)
    assert report.findings == []
    assert report.counts["extended_units"] == 1


ENTRIES_AT = HEADER_BYTES + SLOTS * SLOT_BYTES


@pytest.mark.parametrize(
    ("at", "told_at"),
    [
        pytest.param(ENTRIES_AT + 20 * 7 + 3, ENTRIES_AT + 20 * 7, id="a hash"),
        pytest.param(ENTRIES_AT + 20 * 7 + 10, ENTRIES_AT + 20 * 7, id="a log offset"),
        pytest.param(ENTRIES_AT + 20 * 7 + 19, ENTRIES_AT + 20 * 7, id="a predecessor"),
        pytest.param(HEADER_BYTES + 4 * 3 + 3, HEADER_BYTES + 4 * 3, id="a slot"),
    ],
)
def test_a_damaged_index_is_told_with_file_and_offset(made: Made, at: int, told_at: int) -> None:
    path = next((made.root / "index").iterdir())
    poke(path, at, bytes([peek(path, at, 1)[0] ^ 0x21]))
    assert (path.name, told_at) in [found[:2] for found in findings(made.root)]


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("data", [b"\x80\0\0\0", bytes(4), b"\x7f\xff\xff\xff"])
def test_an_impossible_count_of_an_index_file_is_told(
    made: Made, data: bytes, running: bool
) -> None:
    if running:
        (made.root / "abort").touch()
    path = next((made.root / "index").iterdir())
    poke(path, COUNT_AT, data)
    assert path.name in [found[0] for found in findings(made.root)]


@pytest.mark.parametrize("size", [40 + 4, 40 + 4 * 11, 40 + 4 * 26])
def test_an_empty_index_file_of_any_size_is_looked_at(made: Made, size: int) -> None:
    (made.root / "index" / "20231114221320001").write_bytes(bytes(size))
    assert findings(made.root) == []


def test_a_config_file_that_is_not_json_is_told(made: Made) -> None:
    (made.root / "config" / "topics.json").write_text('{"a":1,')
    (made.root / "config" / "empty.json").write_text("")
    (made.root / "config" / "topics.json.123.tmp").write_text("{")
    assert [name for name, _, _ in findings(made.root)] == ["topics.json"]


def test_a_level_that_stands_beyond_its_queue_is_told(made: Made) -> None:
    (made.root / "config" / "delayOffset.json").write_text('{"offsetTable":{3:2547}}')
    ((name, _, reason),) = findings(made.root)
    assert name == "delayOffset.json"
    assert "level 3" in reason


def test_a_walk_says_where_the_log_ends(made: Made) -> None:
    walk = LogWalk(find_layout(Disk(), made.root), Report())
    assert [one.offset for one in walk.records()] == [offset for offset, _ in made.places]
    assert walk.end == sum(made.places[-1])


def test_units_and_entries_that_a_running_broker_wrote_since_the_walk_are_no_damage(
    made: Made,
) -> None:
    (made.root / "abort").touch()
    last = made.places[-1][0]
    made.poke(last, bytes(made.places[-1][1]))
    assert findings(made.root) == []
    (made.root / "abort").unlink()
    assert len(findings(made.root)) == 2
