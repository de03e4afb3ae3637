"""What is handed out is read by fixed places, and is what taking the whole record apart says."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.api.handed import parts_of
from queues.store.record import SYS_FLAG_COMPRESSED, decode_record
from queues.store.recordencoding import encode_record

#: Neither separators nor NUL, which no property holds.
TEXT = st.text(st.characters(blacklist_characters="\x00\x01\x02", blacklist_categories=["Cs"]))


def record(**changes: object) -> bytes:
    fields = {
        "topic": "orders", "queue_id": 1, "queue_offset": 2, "log_offset": 300, "flag": 1,
        "body": b"{}", "born_ms": 1, "store_ms": 1_790_000_000_000, "properties": {"TAGS": "paid"},
    }  # fmt: skip
    return encode_record(**{**fields, **changes})  # type: ignore[arg-type]


def check(raw: bytes) -> None:
    found, whole = parts_of(raw), decode_record(raw)
    assert found.properties == whole.properties
    assert (found.flag, found.store_ms, found.body) == (
        whole.flag, whole.store_ms, whole.decoded_body(),
    )  # fmt: skip


@given(
    properties=st.dictionaries(TEXT, TEXT, max_size=8),
    body=st.binary(max_size=300),
    topic=st.text("abc-_", min_size=1, max_size=140),
    flag=st.integers(0, 2),
)
def test_both_ways_say_the_same(
    properties: dict[str, str], body: bytes, topic: str, flag: int
) -> None:
    check(record(properties=properties, body=body, topic=topic, flag=flag))


@pytest.mark.parametrize(
    "raw",
    [
        record(properties={}),
        record(topic="t" * 128),
        record(born_host="[::1]:80"),
        record(store_host="[::1]:80"),
        record(body=zlib.compress(b"x" * 100), sys_flag=SYS_FLAG_COMPRESSED),
    ],
    ids=["no properties", "long topic", "born over IPv6", "stored over IPv6", "compressed"],
)
def test_unusual_records_are_read_the_other_way(raw: bytes) -> None:
    check(raw)


def test_a_broker_may_leave_out_the_last_separator() -> None:
    text = b"TAGS\x01paid\x02KEYS\x01a\x02"
    whole = record(properties={"TAGS": "paid", "KEYS": "a"}, property_crc=False)
    lengths = [(len(text) - less).to_bytes(2, "big") for less in (0, 1)]
    raw = whole.replace(lengths[0] + text, lengths[1] + text[:-1])
    assert len(raw) == len(whole) - 1
    check(len(raw).to_bytes(4, "big") + raw[4:])
