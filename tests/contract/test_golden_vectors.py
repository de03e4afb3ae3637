"""RocketMQ's rules as fixed numbers: tag and key hashes, CRCs, the level table, the retry table."""

import struct
import zlib

import pytest

from queues.store.consumequeue import BLANK_UNIT, DISK_UNIT, UNIT_BYTES
from queues.store.errors import LevelTableInvalid
from queues.store.hashes import index_hash, index_hashes, java_hash, java_hashes, tags_code
from queues.store.hosts import encode_host
from queues.store.indexfile import ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES, index_file_bytes
from queues.store.inspection.dump import offset_message_id
from queues.store.inspection.units import EXTENDED_MAX
from queues.store.levels import LevelTable, correct_deliver_timestamp
from queues.store.record import (
    BODY_CRC_AT,
    CRC_PROPERTY_BYTES,
    FIXED_BYTES,
    MAGIC_FILLER,
    MAGIC_V1,
    MAGIC_V2,
    crc_property,
)
from queues.store.recordencoding import encode_filler, encode_record
from queues.store.settings import DEFAULT_LEVELS

NOW_MS = 1_700_000_000_000
DEFAULT_DELAYS_MS = [
    *(1000, 5000, 10_000, 30_000),
    *(minutes * 60_000 for minutes in range(1, 11)),
    *(1_200_000, 1_800_000, 3_600_000, 7_200_000),
]


@pytest.fixture
def table() -> LevelTable:
    return LevelTable.parse(DEFAULT_LEVELS)


@pytest.mark.parametrize(
    ("tag", "code"), [("TagA", 2598919), ("*", 42), ("schedule_tag", 1162501618), ("", 0)]
)
def test_a_tags_code_is_javas_hash(tag: str, code: int) -> None:
    assert tags_code(tag) == code


def test_no_tag_has_the_code_0() -> None:
    assert tags_code(None) == 0


def test_an_index_hash_is_the_absolute_value_of_javas_hash() -> None:
    assert java_hash("Topic#key") == -1904065301
    assert index_hash("Topic", "key") == 1904065301
    assert index_hashes(["Topic#key"]).tolist() == [1904065301]


def test_the_hash_without_a_positive_counterpart_counts_as_0_in_the_index() -> None:
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hashes(["polygenelubricants"]).tolist() == [-(2**31)]
    assert index_hashes(["polygenelubricants"]).tolist() == [0]


def test_a_hash_is_over_utf_16_units() -> None:
    assert java_hash("\U0001f600") == 0xD83D * 31 + 0xDE00
    assert java_hash("ü") == 0xFC


def test_a_body_crc_is_masked_to_31_bits() -> None:
    assert zlib.crc32(b"hello") & 0x7FFFFFFF == 907060870
    record = encode_record(
        topic="t", queue_id=0, queue_offset=0, log_offset=0, body=b"hello", born_ms=0, store_ms=0
    )
    assert int.from_bytes(record[BODY_CRC_AT : BODY_CRC_AT + 4], "big") == 907060870


def test_a_record_without_content_has_91_bytes() -> None:
    record = encode_record(
        topic="", queue_id=0, queue_offset=0, log_offset=0, body=b"", born_ms=0, store_ms=0,
        property_crc=False,
    )  # fmt: skip
    assert len(record) == FIXED_BYTES == 91


def test_magic_numbers_are_rocketmqs() -> None:
    signed = [struct.unpack(">i", magic.to_bytes(4, "big"))[0] for magic in (MAGIC_V1, MAGIC_V2)]
    assert signed == [-626843481, -626843477]
    assert struct.unpack(">i", encode_filler(276)[4:])[0] == -875286124
    assert encode_filler(276) == (276).to_bytes(4, "big") + MAGIC_FILLER.to_bytes(4, "big")


def test_a_property_crc_has_20_bytes_with_its_digits_turned_round() -> None:
    assert crc_property(907060870) == b"__CRC32#\x010780607090\x02"
    assert len(crc_property(0)) == CRC_PROPERTY_BYTES == 20


def test_the_default_level_table(table: LevelTable) -> None:
    assert list(table.delays_ms) == DEFAULT_DELAYS_MS
    assert table.max_level == 18


def test_a_level_units_tags_code_is_its_due_time(table: LevelTable) -> None:
    assert table.due_ms(3, NOW_MS) == 1700000010000


def test_a_level_above_the_highest_is_clamped_to_it(table: LevelTable) -> None:
    assert table.clamp(99) == 18
    assert table.due_ms(99, NOW_MS) == 1700007200000


def test_a_unit_without_a_known_level_is_due_after_a_second(table: LevelTable) -> None:
    assert table.due_ms(0, NOW_MS) == NOW_MS + 1000


@pytest.mark.parametrize(("ahead_ms", "wait"), [(1000, True), (1001, False)])
def test_a_unit_due_too_far_ahead_of_its_delay_is_delivered_now(ahead_ms: int, wait: bool) -> None:
    deliver_ms = correct_deliver_timestamp(now_ms=NOW_MS, due_ms=NOW_MS + ahead_ms, delay_ms=1000)
    assert deliver_ms == (NOW_MS + ahead_ms if wait else NOW_MS)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("1s  5s", "level 2 is empty"),
        (" 1s", "level 1 is empty"),
        ("1s ", "level 2 is empty"),
        ("1s 5", "level 2"),
        ("1s 5x", "s, m, h, d"),
        ("s", "whole number"),
        ("1.5s", "whole number"),
        ("-1s", "whole number"),
        ("+1s", "whole number"),
        ("1_0s", "whole number"),
        ("\u0661s", "whole number"),
        ("0s", "not between"),
        ("9" * 400 + "d", "not between"),
        ("1s\t5s", "whole number"),
        (" ".join(["1s"] * 1000), "more than 999"),
    ],
)
def test_a_level_table_that_rocketmq_half_accepts_is_refused_whole(text: str, word: str) -> None:
    with pytest.raises(LevelTableInvalid) as refused:
        LevelTable.parse(text)
    assert word in refused.value.reason
    assert refused.value.hint


def test_units_of_days_are_understood() -> None:
    assert LevelTable.parse("1d 40d").delays_ms == (86_400_000, 40 * 86_400_000)


def test_a_consume_queue_unit_has_20_bytes_and_a_file_6_000_000() -> None:
    assert DISK_UNIT.itemsize == UNIT_BYTES == 20
    assert 300_000 * UNIT_BYTES == 6_000_000


def test_a_blank_unit_is_rocketmqs() -> None:
    assert struct.pack(">qiq", 0, 0x7FFFFFFF, 0) == BLANK_UNIT


def test_an_address_in_a_consume_queue_ext_is_no_hash_and_no_time() -> None:
    address = 48 * 1024 * 1024 + -(2**63)
    assert address <= EXTENDED_MAX < -(2**31) < 0 < NOW_MS


def test_rocketmqs_own_index_file_has_about_400_megabytes() -> None:
    assert (HEADER_BYTES, SLOT_BYTES, ENTRY_BYTES) == (40, 4, 20)
    assert index_file_bytes(5_000_000, 20_000_000) == 420_000_040


def test_an_offset_message_id_is_host_and_log_offset_in_hexadecimal() -> None:
    assert offset_message_id("127.0.0.1:10911", 300) == "7F00000100002A9F000000000000012C"
    assert len(offset_message_id("[::1]:10911", 300)) == 56
    assert encode_host("127.0.0.1:10911") == bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))
