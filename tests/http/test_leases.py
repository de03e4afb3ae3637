"""Leases: held longer, given back, listed."""

import pytest

NOW_MS = 1_790_000_000_000
HOUR_S = 3_600


def call(api, verb, *receipts, group="billing", **fields):
    answer = api.post(f"groups/{group}/{verb}", {"receipts": list(receipts), **fields})
    assert answer.status == 200, answer.json
    assert [result["receipt"] for result in answer.json["results"]] == list(receipts)
    return answer.json["results"]


def outcomes(api, verb, *receipts, **fields):
    return [result["outcome"] for result in call(api, verb, *receipts, **fields)]


@pytest.fixture
def message(api):
    api.group()
    api.send()
    (found,) = api.receive(lease_seconds=30, consumer_id="worker-1")
    return found


def test_an_extension_counts_from_now_and_voids_the_old_receipt(api, clock, message):
    clock.advance(20_000)
    (result,) = call(api, "extend", message["receipt"], lease_seconds=60)
    assert result["outcome"] == "extended"
    assert result["lease_expires_at_ms"] == NOW_MS + 80_000
    assert result["lease_expires_at"] == "2026-09-21T14:14:40.000Z"
    for verb, fields in (("ack", {}), ("extend", {"lease_seconds": 10}), ("release", {})):
        assert outcomes(api, verb, message["receipt"], **fields) == ["expired"]
    clock.advance(59_000)
    assert api.receive() == []
    assert outcomes(api, "ack", result["new_receipt"]) == ["acked"]


def test_the_old_receipt_is_void_even_if_the_lease_ends_as_before(api, message):
    (result,) = call(api, "extend", message["receipt"], lease_seconds=30)
    assert result["lease_expires_at_ms"] == message["lease_expires_at_ms"]
    assert outcomes(api, "ack", message["receipt"]) == ["expired"]
    assert outcomes(api, "ack", result["new_receipt"]) == ["acked"]


def test_one_attempt_is_leased_for_twelve_hours_at_the_most(api, clock, message):
    receipt = message["receipt"]
    clock.advance(20_000)
    for _ in range(12):
        (result,) = call(api, "extend", receipt, lease_seconds=2 * HOUR_S)
        receipt = result["new_receipt"]
        clock.advance(HOUR_S * 1000 - 5_000)
    assert result["lease_expires_at_ms"] == NOW_MS + 12 * HOUR_S * 1000
    clock.advance(HOUR_S * 1000)
    assert outcomes(api, "extend", receipt, lease_seconds=60) == ["expired"]


def test_a_released_message_is_ready_again_and_no_attempt_was_counted(api, message):
    assert outcomes(api, "release", message["receipt"]) == ["released"]
    (again,) = api.receive(lease_seconds=30)
    assert (again["id"], again["attempt"]) == (message["id"], 1)
    assert again["receipt"] != message["receipt"]
    assert outcomes(api, "ack", message["receipt"]) == ["expired"]
    assert outcomes(api, "release", message["receipt"]) == ["expired"]
    assert outcomes(api, "ack", again["receipt"]) == ["acked"]
    assert outcomes(api, "release", again["receipt"]) == ["expired"]


def test_receipts_of_elsewhere_are_invalid(api, message):
    api.group("mail")
    assert outcomes(api, "extend", message["receipt"], group="mail", lease_seconds=60) == [
        "invalid"
    ]
    assert outcomes(api, "release", "rubbish", message["receipt"]) == ["invalid", "released"]


def test_the_leases_say_who_holds_what_since_when_and_until_when(api, clock, message):
    clock.advance(10_000)
    call(api, "extend", message["receipt"], lease_seconds=60)
    (lease,) = api.get("groups/billing/leases").json["items"]
    assert lease == {
        "id": message["id"],
        "topic": "orders",
        "queue": message["queue"],
        "attempt": 1,
        "consumer_id": "worker-1",
        "since": "2026-09-21T14:13:20.000Z",
        "since_ms": NOW_MS,
        "until": "2026-09-21T14:14:30.000Z",
        "until_ms": NOW_MS + 70_000,
    }
    clock.advance(60_000)
    assert api.get("groups/billing/leases").json["items"] == []


def test_the_leases_are_listed_in_pages(api, clock):
    api.group()
    sent = {api.send()["id"] for _ in range(7)}
    for number in range(7):
        api.receive(max_messages=1, consumer_id=f"worker-{number % 2}")
        clock.advance(1)
    seen, token = [], ""
    while True:
        page = api.get(f"groups/billing/leases?page_size=3&page_token={token}").json
        assert page["count"] == 7
        seen += page["items"]
        token = page["next_page_token"]
        if not token:
            break
    assert {lease["id"] for lease in seen} == sent
    assert len(seen) == 7
    assert {lease["consumer_id"] for lease in seen} == {"worker-0", "worker-1"}


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({"receipts": [], "lease_seconds": 60}, "out_of_bounds", "/receipts"),
        ({"receipts": ["a"], "lease_seconds": 9}, "out_of_bounds", "/lease_seconds"),
        ({"receipts": ["a"], "lease_seconds": 43_201}, "out_of_bounds", "/lease_seconds"),
        ({"receipts": ["a"]}, "field_required", "/lease_seconds"),
    ],
)
def test_what_cannot_be_extended_is_refused(api, fields, code, pointer):
    api.group()
    answer = api.post("groups/billing/extend", fields)
    assert (answer.status, answer.code) == (422, code)
    assert answer.pointers == [pointer]
