"""Scattered stretches of a buffer: the same as one after another."""

import random
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.store.scattered import chosen_of, crcs_of, put_rows, records_at, rows_at

buffers = st.binary(min_size=8, max_size=60)
#: Places of a buffer from its beginning (0.0) to its end (1.0).
spots = st.lists(st.floats(0, 1), max_size=12)


def longs(values: list[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, np.int64)


@given(buffers, spots, st.integers(1, 8))
def test_rows_are_the_stretches_at_their_places(
    buffer: bytes, spots: list[float], width: int
) -> None:
    at = [int(spot * (len(buffer) - width)) for spot in spots]
    rows = rows_at(buffer, longs(at), width)
    assert [bytes(row) for row in rows] == [buffer[place : place + width] for place in at]


@given(st.integers(1, 9), st.integers(0, 6), st.randoms(use_true_random=False))
def test_rows_are_written_where_they_belong_and_nowhere_else(
    width: int, count: int, luck: random.Random
) -> None:
    buffer = bytearray(luck.randbytes(100))
    at = sorted(luck.sample(range(0, 90, 9), count), key=lambda _: luck.random())
    rows = np.frombuffer(luck.randbytes(count * width), np.uint8).reshape(count, width)
    expected = bytearray(buffer)
    for place, row in zip(at, rows, strict=True):
        expected[place : place + width] = bytes(row)
    put_rows(buffer, longs(at), rows)
    assert buffer == expected


def test_columns_in_reverse_order_and_records_of_numbers_are_written_as_they_read() -> None:
    buffer = bytearray(12)
    put_rows(buffer, longs([2]), np.frombuffer(b"abc", np.uint8).reshape(1, 3)[:, ::-1])
    put_rows(buffer, longs([8, 6]), np.array([1, 2], ">u2"))
    assert bytes(buffer) == b"\0\0cba\0\0\2\0\1\0\0"


def test_a_row_that_does_not_fit_is_refused_and_not_written_in_part() -> None:
    buffer = bytearray(8)
    with pytest.raises(IndexError):
        put_rows(buffer, longs([6]), np.ones((1, 3), np.uint8))
    assert bytes(buffer) == bytes(8)


@given(buffers, st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), max_size=9))
def test_crcs_are_those_of_the_stretches(buffer: bytes, told: list[tuple[float, int]]) -> None:
    starts = [int(spot * len(buffer)) for spot, _ in told]
    ends = [start + width for start, (_, width) in zip(starts, told, strict=True)]
    assert crcs_of(buffer, longs(starts), longs(ends)).tolist() == [
        crc32(buffer[start:end]) & 0x7FFFFFFF for start, end in zip(starts, ends, strict=True)
    ]


@given(buffers, spots, st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_crcs_of_stretches_of_few_lengths_are_too(
    buffer: bytes, spots: list[float], widths: list[int]
) -> None:
    pairs = [(int(spot * (len(buffer) - 9)), width) for width in widths for spot in spots * 8]
    starts = [max(0, start) for start, _ in pairs]
    ends = [start + width for start, (_, width) in zip(starts, pairs, strict=True)]
    assert crcs_of(buffer, longs(starts), longs(ends)).tolist() == [
        crc32(buffer[start:end]) & 0x7FFFFFFF for start, end in zip(starts, ends, strict=True)
    ]


PAIR = np.dtype({"names": ["low", "high"], "formats": [">u2", "u1"], "offsets": [0, 3]})


def test_records_of_several_fields_are_copied_and_chosen() -> None:
    found = records_at(b"\0\1x\2\0\5y\6", PAIR, longs([4, 0]))
    assert found.tolist() == [(5, 6), (1, 2)]
    assert chosen_of(found, found["high"] == 2).tolist() == [(1, 2)]
    assert chosen_of(found, slice(0, 1)).tolist() == [(5, 6)]
    assert len(chosen_of(found, slice(0, 0))) == 0
