"""Every codec of the formats gives back what it was given, and refuses what was bent."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queues.store.checkpoint import CHECKPOINT_BYTES, StoreCheckpoint
from queues.store.configfiles import read_json_lenient
from queues.store.hashes import index_hash, index_hashes, java_hash, java_hashes
from queues.store.hosts import decode_host, encode_host
from queues.store.levels import LevelTable
from queues.store.properties import decode_properties, encode_properties
from queues.store.record import (
    FIXED_BYTES,
    RecordState,
    check_record,
    decode_record,
)
from queues.store.recordencoding import encode_record

words = st.text(st.characters(codec="utf-8", exclude_characters="\x00\x01\x02"), max_size=30)
names = words.filter(lambda name: name != "__CRC32#")
longs = st.integers(-(2**63), 2**63 - 1)
ints = st.integers(-(2**31), 2**31 - 1)
hosts = st.builds(
    lambda address, port: f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}",
    st.ip_addresses(),
    st.integers(0, 65_535),
)
records = st.fixed_dictionaries(
    {
        "topic": st.text(st.characters(codec="utf-8"), max_size=200),
        "queue_id": ints,
        "queue_offset": longs,
        "log_offset": st.integers(0, 2**63 - 1),
        "body": st.binary(max_size=200),
        "born_ms": longs,
        "store_ms": longs,
        "properties": st.dictionaries(names, words, max_size=6),
        "flag": ints,
        "sys_flag": st.integers(0, 0xFFF),
        "born_host": hosts,
        "store_host": hosts,
        "reconsume_times": ints,
        "prepared_offset": longs,
        "property_crc": st.booleans(),
    }
)
HOST_BITS = 0x30


@given(records, st.integers(0, 20))
def test_a_record_is_read_back_as_it_was_written(fields: dict[str, object], shift: int) -> None:
    encoded = encode_record(**fields)  # type: ignore[arg-type]
    buffer = b"\xff" * shift + encoded + b"\xff" * 5
    checked = check_record(buffer, shift, shift + len(encoded), fields["log_offset"])  # type: ignore[arg-type]
    assert (checked.state, checked.size) == (RecordState.WHOLE, len(encoded))
    record = decode_record(buffer, shift)
    for name, value in fields.items():
        if name == "properties":
            found = {k: v for k, v in record.properties.items() if k != "__CRC32#"}
            assert found == value
        elif name == "sys_flag":
            assert record.sys_flag & ~HOST_BITS == value & ~HOST_BITS  # type: ignore[operator]
        elif name.endswith("_host"):
            assert encode_host(getattr(record, name)) == encode_host(value)  # type: ignore[arg-type]
        elif name != "property_crc":
            assert getattr(record, name) == value
    assert record.size == len(encoded) >= FIXED_BYTES


@given(records, st.data())
def test_a_sealed_record_does_not_survive_one_flipped_bit(
    fields: dict[str, object], data: st.DataObject
) -> None:
    encoded = bytearray(encode_record(**{**fields, "property_crc": True}))  # type: ignore[arg-type]
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] ^= 1 << data.draw(st.integers(0, 7))
    end = len(encoded)
    checked = check_record(encoded, 0, end, fields["log_offset"], sealed=True)  # type: ignore[arg-type]
    assert checked.state is not RecordState.WHOLE


@given(records, st.data())
def test_a_record_whose_end_was_not_written_is_torn(
    fields: dict[str, object], data: st.DataObject
) -> None:
    encoded = encode_record(**{**fields, "property_crc": True})  # type: ignore[arg-type]
    written = data.draw(st.integers(0, len(encoded) - 1))
    buffer = encoded[:written].ljust(len(encoded), b"\0")
    checked = check_record(buffer, 0, len(buffer), fields["log_offset"])  # type: ignore[arg-type]
    assert checked.state in (RecordState.TORN, RecordState.BLANK)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_no_bytes_at_all_make_the_check_fail(buffer: bytes, position: int) -> None:
    position = min(position, len(buffer))
    checked = check_record(buffer, position, len(buffer), position)
    assert checked.size <= len(buffer) - position or checked.state is RecordState.TORN


@given(st.dictionaries(words, words, max_size=8))
def test_properties_are_read_back_in_their_order(properties: dict[str, str]) -> None:
    found = decode_properties(encode_properties(properties))
    assert list(found.items()) == list(properties.items())


@given(st.dictionaries(words, words, min_size=1, max_size=8))
def test_a_last_property_without_its_end_is_read(properties: dict[str, str]) -> None:
    assert decode_properties(encode_properties(properties)[:-1]) == properties


@given(st.lists(st.text(max_size=40), max_size=30))
def test_many_hashes_are_each_one_hash(texts: list[str]) -> None:
    assert java_hashes(texts).tolist() == [java_hash(text) for text in texts]
    assert java_hashes(texts).dtype == np.int32


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=30))
def test_many_index_hashes_are_each_one_index_hash(pairs: list[tuple[str, str]]) -> None:
    texts = [f"{topic}#{key}" for topic, key in pairs]
    assert index_hashes(texts).tolist() == [index_hash(topic, key) for topic, key in pairs]
    assert (index_hashes(texts) >= 0).all()


@given(hosts)
def test_a_host_is_read_back(host: str) -> None:
    assert encode_host(decode_host(encode_host(host))) == encode_host(host)


@given(st.builds(StoreCheckpoint, longs, longs, longs, longs, longs))
def test_a_checkpoint_is_read_back(checkpoint: StoreCheckpoint) -> None:
    encoded = checkpoint.encode()
    assert len(encoded) == CHECKPOINT_BYTES
    assert StoreCheckpoint.decode(encoded) == checkpoint


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.integers(0, 99).map(str), inner, max_size=4)
    ),
    max_leaves=20,
)


def fastjson(value: object) -> str:
    """Write a value as fastjson does: keys that are integers without quotes."""
    if isinstance(value, dict):
        pairs = (
            f"{key if key.isdecimal() and key.isascii() else json.dumps(key)}:{fastjson(one)}"
            for key, one in value.items()
        )
        return "{\n\t" + ",".join(pairs) + "\n}"
    if isinstance(value, list):
        return "[" + ",".join(map(fastjson, value)) + "]"
    return json.dumps(value)


@given(json_values)
def test_fastjsons_dialect_is_read_like_json(value: object) -> None:
    assert read_json_lenient(fastjson(value).encode()) == value
    assert read_json_lenient(json.dumps(value).encode()) == value


@given(st.lists(st.tuples(st.integers(1, 999), st.sampled_from("smhd")), min_size=1, max_size=99))
def test_a_level_table_holds_each_delay_at_its_place(entries: list[tuple[int, str]]) -> None:
    table = LevelTable.parse(" ".join(f"{number}{unit}" for number, unit in entries))
    unit_ms = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    assert [table.delay_ms(level) for level in range(1, table.max_level + 1)] == [
        number * unit_ms[unit] for number, unit in entries
    ]


@given(st.integers(-5, 200), st.integers(0, 2**44))
def test_a_clamped_level_is_one_of_the_table(level: int, store_ms: int) -> None:
    table = LevelTable.parse("1s 5s 10s")
    assert 0 <= table.clamp(level) <= table.max_level
    assert table.due_ms(level, store_ms) > store_ms
