"""Grouping: which of many numbers are the same, and where."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queues.store.grouping import are_different, members_by_number, stable_order


def longs(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_members_are_told_by_ascending_value() -> None:
    assert [part.tolist() for part in members_by_number(longs(7, 3, 7))] == [[1], [0, 2]]
    assert [part.tolist() for part in members_by_number(longs(5, 5))] == [[0, 1]]
    assert members_by_number(longs()) == []


@given(st.lists(st.integers(-3, 3) | st.integers(-(1 << 62), 1 << 61), max_size=40))
def test_every_number_is_a_member_of_one_group_of_its_value(values: list[int]) -> None:
    groups = members_by_number(longs(*values))
    assert sorted(number for group in groups for number in group.tolist()) == [*range(len(values))]
    assert [values[group[0]] for group in groups] == sorted(set(values))
    for group in groups:
        assert {values[number] for number in group} == {values[group[0]]}
        assert group.tolist() == sorted(group.tolist())


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=50), st.sampled_from([1, 1000]))
def test_values_are_sorted_stably_however_far_apart(values: list[int], spread: int) -> None:
    array = longs(*values) // (1 << 30) * spread + longs(*values) % 5
    assert stable_order(array).tolist() == np.argsort(array, kind="stable").tolist()


@given(st.lists(st.integers(0, 20)))
def test_values_are_different_or_not(values: list[int]) -> None:
    assert are_different(longs(*values)) == (len(set(values)) == len(values))
