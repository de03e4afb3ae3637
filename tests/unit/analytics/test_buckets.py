"""Log-linear buckets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analytics.buckets import NEGATIVE, bucket_of, buckets_of, upper_edge


def test_a_hundred_milliseconds_lie_in_a_bucket_of_two() -> None:
    assert bucket_of(100) == bucket_of(101) == 82
    assert (upper_edge(82), upper_edge(81), upper_edge(63)) == (101, 99, 63)


def test_what_is_negative_has_a_bucket_of_its_own() -> None:
    assert buckets_of(np.array([-1, -(10**9), 0])).tolist() == [NEGATIVE, NEGATIVE, 0]
    assert upper_edge(NEGATIVE) == -1


@given(st.integers(0, 2**52))
def test_a_bucket_holds_its_value_and_is_at_most_3_2_percent_wide(value: int) -> None:
    bucket = bucket_of(value)
    lower = upper_edge(bucket - 1) + 1 if bucket else 0
    assert lower <= value <= upper_edge(bucket)
    assert upper_edge(bucket) - lower <= 0.032 * lower


@given(st.lists(st.integers(-(2**40), 2**52), min_size=1))
def test_many_are_counted_as_each_alone(values: list[int]) -> None:
    assert buckets_of(np.array(values)).tolist() == [bucket_of(value) for value in values]


@given(st.integers(0, 2**50))
def test_buckets_ascend(value: int) -> None:
    assert bucket_of(value) <= bucket_of(value + 1) <= bucket_of(value) + 1
