"""Decimal digits in columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queues.store.digits import digits_of


@given(st.lists(st.integers(0, 2**62), max_size=40), st.integers(1, 20))
def test_the_digits_are_those_of_the_number_with_leading_zeros(
    values: list[int], width: int
) -> None:
    digits = digits_of(np.array(values, np.int64), width)
    told = [bytes(row).decode() for row in digits]
    assert told == [f"{value:0{width}d}"[-width:] for value in values]
