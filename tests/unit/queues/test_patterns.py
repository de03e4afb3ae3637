"""Patterns of topics and groups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.access import Patterns


@pytest.mark.parametrize(
    ("patterns", "fits", "others"),
    [
        (["orders"], ["orders"], ["order", "orders2", "Orders", ""]),
        (["eu-*"], ["eu-", "eu-orders"], ["eu", "us-eu-"]),
        (["*-dlq", "a*b*c"], ["x-dlq", "abc", "aXbYc"], ["dlq", "acb"]),
        (["*"], ["anything", ""], []),
        (["a.b"], ["a.b"], ["axb"]),
        ([], [], ["anything", ""]),
    ],
)
def test_a_star_stands_for_any_characters(patterns, fits, others):
    asked = Patterns(patterns)
    assert all(asked.allow(name) for name in fits)
    assert not any(asked.allow(name) for name in others)


@given(st.lists(st.text(alphabet="ab*.[(\\", max_size=6), max_size=4), st.text(max_size=6))
def test_no_pattern_is_a_fault_and_asking_twice_answers_the_same(patterns, name):
    asked = Patterns(patterns)
    assert asked.allow(name) == asked.allow(name)
