"""What a record may look like at its edges, and how a compressed body is read."""

import sys
import zlib
from types import ModuleType, SimpleNamespace

import pytest

from queues.store.compression import LZ4, ZLIB, ZLIB_OLD, ZSTD, decompress
from queues.store.errors import BodyUnreadable, RecordCorrupt
from queues.store.properties import RESERVED_NAMES, encode_properties, is_reserved
from queues.store.record import MAGIC_V1, MAGIC_V2, RecordState, check_record, decode_record
from queues.store.recordencoding import encode_filler, encode_record

BODY = b"to be or not to be " * 50


def record(**changes: object) -> bytes:
    fields = {
        "topic": "orders", "queue_id": 1, "queue_offset": 2, "log_offset": 300,
        "body": BODY, "born_ms": 1, "store_ms": 2,
        "properties": {"UNIQ_KEY": "id", "TAGS": "paid", "KEYS": "a  b"},
    }  # fmt: skip
    return encode_record(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_topic_of_127_bytes_is_v1_and_one_of_128_is_v2() -> None:
    assert decode_record(record(topic="t" * 127)).magic == MAGIC_V1
    longer = decode_record(record(topic="t" * 128))
    assert (longer.magic, longer.topic) == (MAGIC_V2, "t" * 128)


def test_id_tag_and_keys_are_read_from_the_properties() -> None:
    found = decode_record(record())
    assert (found.unique_id, found.tag, found.keys) == ("id", "paid", ("a", "b"))
    empty = decode_record(record(properties={}))
    assert (empty.unique_id, empty.tag, empty.keys) == (None, None, ())


def test_a_body_of_4_mib_is_read() -> None:
    body = bytes(range(256)) * 16_384
    assert decode_record(record(body=body)).body == body


def test_nothing_written_is_blank_and_a_filler_is_told() -> None:
    assert check_record(bytes(100), 0, 100, 0).state is RecordState.BLANK
    assert check_record(bytes(7), 0, 7, 0).state is RecordState.BLANK
    filler = encode_filler(50) + bytes(42)
    assert check_record(filler, 0, 50, 0)[:2] == (RecordState.FILLER, 50)
    assert check_record(filler, 0, 49, 0).state is RecordState.TORN


def test_a_record_that_says_it_lies_elsewhere_is_torn() -> None:
    encoded = record()
    found = check_record(encoded, 0, len(encoded), 301)
    assert found.state is RecordState.TORN
    assert "300" in found.reason


def test_nul_in_the_properties_is_torn_though_every_length_adds_up() -> None:
    encoded = record(property_crc=False)
    holed = encoded[:-4] + b"\0\0" + encoded[-2:]
    assert check_record(holed, 0, len(holed), 300).state is RecordState.TORN
    with pytest.raises(RecordCorrupt) as refused:
        decode_record(holed)
    assert refused.value.offset == 300


def test_a_sealed_record_must_carry_its_property_crc() -> None:
    encoded = record(property_crc=False)
    assert check_record(encoded, 0, len(encoded), 300).state is RecordState.WHOLE
    assert check_record(encoded, 0, len(encoded), 300, sealed=True).state is RecordState.TORN
    sealed = record()
    assert check_record(sealed, 0, len(sealed), 300, sealed=True).state is RecordState.WHOLE


@pytest.mark.parametrize("data", [b"", bytes(91), b"\xff" * 200])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(RecordCorrupt):
        decode_record(data)


@pytest.mark.parametrize("kind", [ZLIB, ZLIB_OLD])
def test_a_body_that_zlib_compressed_is_read(kind: int) -> None:
    found = decode_record(record(body=zlib.compress(BODY), sys_flag=1 | kind << 8))
    assert found.body != BODY
    assert found.decoded_body() == BODY


def test_a_body_whose_compressed_bit_is_not_set_is_taken_as_it_is() -> None:
    assert decode_record(record(sys_flag=ZLIB << 8)).decoded_body() == BODY


@pytest.mark.parametrize(("kind", "package"), [(LZ4, "lz4"), (ZSTD, "zstandard")])
def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, kind: int, package: str
) -> None:
    for module in ("lz4", "lz4.frame", "zstandard"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BodyUnreadable) as refused:
        decompress(BODY, 1 | kind << 8)
    assert package in refused.value.reason


def test_lz4_and_zstandard_bodies_go_to_their_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reader:
        def decompress(self, body: bytes) -> bytes:
            return body[::-1]

    lz4 = ModuleType("lz4")
    frame = SimpleNamespace(decompress=lambda body: body.upper())
    monkeypatch.setitem(sys.modules, "lz4", lz4)
    monkeypatch.setitem(sys.modules, "lz4.frame", frame)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "zstandard", SimpleNamespace(ZstdDecompressor=Reader))  # type: ignore[arg-type]
    assert decompress(b"body", 1 | LZ4 << 8) == b"BODY"
    assert decompress(b"body", 1 | ZSTD << 8) == b"ydob"


@pytest.mark.parametrize("sys_flag", [1 | 7 << 8, 1 | ZLIB << 8])
def test_a_body_that_cannot_be_decompressed_is_told(sys_flag: int) -> None:
    with pytest.raises(BodyUnreadable):
        decompress(b"no zlib at all", sys_flag)


@pytest.mark.parametrize("name", ["UNIQ_KEY", "DELAY", "TIMER_DELIVER_MS", "PD_DUE", "PD_ANY"])
def test_rocketmqs_names_and_ours_are_reserved(name: str) -> None:
    assert is_reserved(name)


def test_other_names_are_the_users() -> None:
    assert not is_reserved("shop")
    assert not is_reserved("pd_due")
    assert "" not in RESERVED_NAMES


@pytest.mark.parametrize("bad", ["a\x01", "a\x02", "a\0"])
def test_a_separator_inside_a_property_is_refused(bad: str) -> None:
    for properties in ({bad: "value"}, {"name": bad}):
        with pytest.raises(ValueError, match="separator"):
            encode_properties(properties)


def test_properties_beyond_32_767_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="32767"):
        record(properties={"a": "x" * 32_767})
