"""What a consumer holds: renewed in time, settled once, given back at the end."""

from datetime import UTC, datetime
from typing import Any

import pytest

from postdate.client.consuming.holding import Held, Holdings
from postdate.client.consuming.outcomes import (
    ACK,
    RELEASE,
    DeadLetterNow,
    RetryLater,
    outcome_of,
)
from postdate.client.shapes.consuming import ReceiptResult, ReceivedMessage

THEN = datetime(2026, 1, 31, tzinfo=UTC)


def message(number: int, **fields: Any) -> ReceivedMessage:
    return ReceivedMessage(
        **{"id": f"{number:032x}", "topic": "orders", "queue": 0, "body": "x", "attempt": 1,
           "receipt": f"r{number}", "delivered_at": THEN, "delivered_at_ms": 0,
           "lease_expires_at": THEN, "lease_expires_at_ms": 0, **fields}
    )  # fmt: skip


def holding(count: int) -> tuple[Holdings, list[Held]]:
    holdings = Holdings(capacity=10, lease_s=60)
    return holdings, holdings.take([message(n) for n in range(count)], 100.0)


def test_room_is_what_the_capacity_leaves() -> None:
    holdings, held = holding(3)
    assert holdings.room == 7
    holdings.finish(held[0], ACK)
    assert holdings.room == 7, "until it is settled"
    (settlement,) = holdings.settlements()
    holdings.settled(settlement, [ReceiptResult(receipt="r0", outcome="acked")])
    assert (holdings.room, holdings.figures.acked) == (8, 1)


def test_equal_outcomes_go_together() -> None:
    holdings, held = holding(4)
    for one, error in zip(
        held, (None, ValueError("a"), ValueError("a"), KeyError("b")), strict=True
    ):
        holdings.finish(one, ACK if error is None else outcome_of(error))
    found = {one.outcome: one.receipts for one in holdings.settlements()}
    assert found == {
        ACK: ["r0"],
        outcome_of(ValueError("a")): ["r1", "r2"],
        outcome_of(KeyError("b")): ["r3"],
    }
    assert holdings.settlements() == []


def test_a_lease_is_renewed_when_a_third_of_it_is_over_and_its_receipt_replaced() -> None:
    holdings, held = holding(2)
    assert holdings.due_renewals(119.9) == []
    due = holdings.due_renewals(120.0)
    assert due == held
    results = [
        ReceiptResult(receipt="r0", outcome="extended", new_receipt="n0"),
        ReceiptResult(receipt="r1", outcome="expired"),
    ]
    holdings.renewed(due, results, 120.0)
    assert [one.receipt for one in held] == ["n0", "r1"]
    assert holdings.due_renewals(139.9) == []
    assert holdings.due_renewals(140.0) == held[:1], "a lost lease is not renewed again"


def test_what_is_finished_is_not_renewed() -> None:
    holdings, held = holding(1)
    holdings.finish(held[0], ACK)
    assert holdings.due_renewals(1000.0) == []
    assert holdings.next_renewal_s() is None


def test_what_was_given_back_neither_starts_nor_counts_when_it_ends() -> None:
    holdings, held = holding(2)
    assert holdings.start(held[0])
    holdings.give_back(running=False)
    assert not holdings.start(held[1])
    (settlement,) = holdings.settlements()
    assert (settlement.outcome, settlement.held) == (RELEASE, [held[1]])
    holdings.give_back(running=True)
    (settlement,) = holdings.settlements()
    assert (settlement.outcome, settlement.held) == (RELEASE, [held[0]])
    holdings.finish(held[0], ACK)
    assert holdings.settlements() == []


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise KeyError("no text")


class Busy(RetryLater):
    def __init__(self) -> None:
        Exception.__init__(self, "busy")


@pytest.mark.parametrize("verb", [ValueError, RetryLater, DeadLetterNow])
def test_every_reason_can_be_sent_and_is_short_enough(verb: type[Exception]) -> None:
    reason = outcome_of(verb("caf\udce9 \ud800")).reason or ""
    assert reason.endswith("caf\\udce9 \\ud800")
    assert len(outcome_of(verb("\udce9" * 900)).reason or "") == 1000
    outcome_of(RetryLater("busy", delay="\ud800")).delay.encode()


def test_an_exception_without_a_text_is_an_outcome_all_the_same() -> None:
    assert outcome_of(Unspeakable()).reason == "Unspeakable: its text cannot be had: KeyError"
    assert outcome_of(Busy()) == outcome_of(RetryLater("busy"))


def test_an_exception_says_what_becomes_of_the_message() -> None:
    assert outcome_of(ValueError("no such order")).reason == "ValueError: no such order"
    assert outcome_of(ValueError()).reason == "ValueError"
    later = outcome_of(RetryLater("busy", delay=90))
    assert (later.verb, later.reason, later.delay) == ("retry", "busy", "90000ms")
    assert outcome_of(DeadLetterNow("never")).verb == "dead_letter"
    assert len(outcome_of(ValueError("x" * 5000)).reason or "") == 1000
