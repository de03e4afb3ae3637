"""Receipts: opaque, tamper-evident, and valid in every process."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.store.receipts import Receipts, Shown

UNTIL = 1_700_000_060_000


def sealed(receipts: Receipts, *, group: str = "g", topic: str = "orders", count: int = 40):
    offsets = list(range(1_000, 1_000 + count))
    return receipts.seal(
        group, topic, 3, epoch=77, offsets=offsets, bouts=[2] * count, until_ms=UNTIL
    )


@pytest.fixture
def receipts() -> Receipts:
    return Receipts(b"a secret of the tests")


@pytest.mark.parametrize("topic", ["o", "or", "ord", "orders", "t" * 127, "größer"])
def test_a_receipt_says_what_it_was_sealed_for(receipts, topic):
    (shown,) = receipts.open("g", sealed(receipts, topic=topic, count=3))
    assert shown == Shown(
        topic, 3, [0, 1, 2], [1_000, 1_001, 1_002], [2, 2, 2], [77] * 3, [UNTIL] * 3
    )


def test_a_receipt_is_valid_in_another_process(receipts):
    (shown,) = Receipts(b"a secret of the tests").open("g", sealed(receipts))
    assert len(shown.positions) == 40


def test_a_receipt_of_another_secret_or_group_is_not_genuine(receipts):
    given = sealed(receipts)
    assert Receipts(b"another").open("g", given) == []
    assert receipts.open("h", given) == []


def test_receipts_are_distinct_and_url_safe(receipts):
    given = sealed(receipts)
    assert len(set(given)) == len(given)
    assert all(receipt.replace("-", "").replace("_", "").isalnum() for receipt in given)


@given(place=st.integers(0, 71), character=st.sampled_from("AZaz09-_+/=* é\n"))
def test_a_receipt_with_another_character_is_not_genuine(place, character):
    receipts = Receipts(b"a secret of the tests")
    (receipt,) = sealed(receipts, count=1)
    changed = receipt[:place] + character + receipt[place + 1 :]
    assert bool(receipts.open("g", [changed])) == (changed == receipt)


@given(st.lists(st.one_of(st.text(), st.text(alphabet="ABab01-_", min_size=68, max_size=80))))
def test_garbage_is_left_out_and_the_genuine_found(garbage):
    receipts = Receipts(b"a secret of the tests")
    genuine = sealed(receipts, count=2)
    (shown,) = receipts.open("g", [genuine[0], *garbage, genuine[1]])
    assert shown.positions == [0, 1 + len(garbage)]


def test_receipts_of_several_queues_are_told_apart(receipts):
    one, two = sealed(receipts, count=2), sealed(receipts, topic="refunds", count=2)
    found = receipts.open("g", [one[0], two[0], one[1], two[1]])
    assert {shown.topic: shown.positions for shown in found} == {
        "orders": [0, 2],
        "refunds": [1, 3],
    }


@given(st.permutations(range(40)), st.integers(1, 40))
def test_receipts_are_genuine_in_any_order_and_company(order, count):
    receipts = Receipts(b"a secret of the tests")
    given = sealed(receipts)
    (shown,) = receipts.open("g", [given[place] for place in order[:count]])
    assert shown.positions == list(range(count))
    assert shown.offsets == [1_000 + place for place in order[:count]]


def test_a_code_is_not_that_of_a_neighbour(receipts):
    given = sealed(receipts, count=32)
    for one, other in pairwise(given):
        swapped = other[:21] + one[21:]
        assert receipts.open("g", [swapped]) == []
