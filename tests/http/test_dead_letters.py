"""Dead letters: listed, filtered, counted by reason, exported, discarded, purged."""

import csv
import io
import json

import pytest

NOW_MS = 1_790_000_000_000


def kill(api, message, reason=None, group="billing"):
    body = {"receipts": [message["receipt"]], "reason": reason}
    (result,) = api.post(f"groups/{group}/dead-letter", body).json["results"]
    assert result["outcome"] == "dead"


def dies(api, clock, reason=None, **fields):
    """The id of a message that is sent, received and given up, a second after the one before."""
    topic = fields.pop("topic", "orders")
    sent = api.send(topic, **fields)
    (message,) = api.receive(consumer_id="worker-1")
    kill(api, message, reason)
    clock.advance(1_000)
    return sent["id"]


def listed(api, query=""):
    answer = api.get(f"groups/billing/dead-letters{query}")
    assert answer.status == 200, answer.json
    return [letter["id"] for letter in answer.json["items"]]


@pytest.fixture
def letters(api, clock):
    """Three dead letters, oldest first."""
    topics = [{"topic": "orders"}, {"topic": "mail"}]
    api.put("groups/billing", {"subscriptions": topics, "start_from": "earliest"})
    return [
        dies(api, clock, "no stock", keys=["k1"], tag="a"),
        dies(api, clock, "bank closed", keys=["k2"]),
        dies(api, clock, "no stock", topic="mail", body={"n": 1}, properties={"p": "v"}),
    ]


def test_a_dead_letter_tells_everything(api, letters):
    letter = api.get(f"groups/billing/dead-letters/{letters[0]}").json
    assert letter.pop("queue") in range(8)
    assert letter == {
        "id": letters[0],
        "group": "billing",
        "topic": "orders",
        "tag": "a",
        "keys": ["k1"],
        "failure_count": 1,
        "reason": "no stock",
        "created_at": "2026-09-21T14:13:20.000Z",
        "created_at_ms": NOW_MS,
        "died_at": "2026-09-21T14:13:20.000Z",
        "died_at_ms": NOW_MS,
        "redriven_at": None,
        "redriven_at_ms": None,
        "redriven_by": None,
        "body": "hello",
        "properties": {},
        "failures": [
            {
                "attempt": 1,
                "at": "2026-09-21T14:13:20.000Z",
                "at_ms": NOW_MS,
                "reason": "no stock",
                "consumer_id": "worker-1",
            }
        ],
        "lineage": [],
    }


def test_they_are_listed_newest_first_in_pages(api, letters):
    assert listed(api) == letters[::-1]
    page = api.get("groups/billing/dead-letters?page_size=2").json
    assert page["count"] == 3
    rest = api.get(f"groups/billing/dead-letters?page_size=2&page_token={page['next_page_token']}")
    ids = [letter["id"] for letter in page["items"] + rest.json["items"]]
    assert ids == letters[::-1]
    assert rest.json["next_page_token"] == ""


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("?topic=mail", [2]),
        ("?topic=nobody", []),
        ("?key=k2", [1]),
        ("?reason=no%20stock", [2, 0]),
        ("?reason=no%20stock&topic=orders", [0]),
        (f"?died_after={NOW_MS + 1000}", [2, 1]),
        (f"?died_before={NOW_MS + 1000}", [0]),
        ("?died_after=2026-09-21T14:13:21Z&died_before=2026-09-21T14:13:22Z", [1]),
    ],
)
def test_they_are_found_by_topic_key_reason_and_time(api, letters, query, chosen):
    assert listed(api, query) == [letters[number] for number in chosen]


def test_a_filter_that_reads_records_pages_too(api, letters):
    query = "groups/billing/dead-letters?reason=no%20stock&page_size=1"
    page = api.get(query).json
    rest = api.get(f"{query}&page_token={page['next_page_token']}").json
    found = [letter["id"] for letter in page["items"] + rest["items"]]
    assert found == [letters[2], letters[0]]
    assert rest["next_page_token"] == ""


def test_they_are_counted_by_reason(api, letters):
    counted = api.get("groups/billing/dead-letters/reasons").json
    assert counted["exact"] is True
    assert [(one["reason"], one["count"], one["sample_id"]) for one in counted["items"]] == [
        ("no stock", 2, letters[2]),
        ("bank closed", 1, letters[1]),
    ]
    assert counted["items"][0]["first_died_at_ms"] == NOW_MS
    assert counted["items"][0]["last_died_at_ms"] == NOW_MS + 2_000


def streamed(api, path):
    response = api._client.get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {api.secret}"})
    assert response.status_code == 200
    return response["Content-Type"], b"".join(response.streaming_content).decode()


def test_they_are_exported_as_csv(api, clock, letters):
    dies(api, clock, '=HYPERLINK("x")')
    kind, text = streamed(api, "groups/billing/dead-letters?format=csv")
    assert kind == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows[:3]] == letters
    assert (rows[2]["topic"], rows[2]["body"], rows[2]["properties"]) == (
        "mail", '{"n": 1}', '{"p":"v"}',
    )  # fmt: skip
    assert rows[3]["reason"] == '\'=HYPERLINK("x")', "no spreadsheet runs it"


def test_they_are_exported_as_ndjson(api, letters):
    kind, text = streamed(api, "groups/billing/dead-letters?format=ndjson&topic=mail")
    assert kind == "application/x-ndjson; charset=utf-8"
    (letter,) = [json.loads(line) for line in text.splitlines()]
    assert (letter["id"], letter["body"], letter["reason"]) == (letters[2], {"n": 1}, "no stock")


def test_the_ndjson_export_has_the_fields_of_the_api(api, clock, letters):
    redriven = {"ids": [letters[0]]}
    assert api.post("groups/billing/dead-letters/redrive", redriven).status == 200
    clock.advance(1_000)
    (message,) = api.receive()
    kill(api, message, "again")
    _, text = streamed(api, "groups/billing/dead-letters?format=ndjson&topic=orders")
    exported = [json.loads(line) for line in text.splitlines()]
    alone = [api.get(f"groups/billing/dead-letters/{one['id']}").json for one in exported]
    assert exported == alone
    assert any(one["lineage"] for one in exported)
    assert all("at_ms" in failure for one in exported for failure in one["failures"])


def test_a_discarded_one_is_gone_and_the_audit_log_says_who(api, letters):
    path = f"groups/billing/dead-letters/{letters[1]}"
    assert api.delete(f"{path}?reason=settled%20by%20hand").json == {"outcome": "discarded"}
    assert api.delete(path).code == "dead_letter_not_found"
    assert api.get(path).status == 404
    assert listed(api) == [letters[2], letters[0]]
    (entry,) = [
        entry
        for entry in api.get("audit-log").json["items"]
        if entry["action"] == "deadletter.discard"
    ]
    assert (entry["subject"], entry["by"]) == ("billing", "key:test")
    timeline = api.get(f"messages/{letters[1]}").json["timeline"]
    assert [event["event"] for event in timeline] == ["sent", "died", "discarded"]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ({"all": True}, []),
        ({"filter": {"reason": "no stock"}}, [1]),
        ({"filter": {"died_before": NOW_MS + 1000}}, [2, 1]),
        ({"ids": "first"}, [2, 1]),
    ],
)
def test_what_is_selected_is_purged(api, letters, body, left):
    if "ids" in body:
        body = {"ids": [letters[0], "0" * 32, "rubbish"]}
    answer = api.post("groups/billing/dead-letters/purge", body)
    assert answer.json == {"discarded": 3 - len(left)}
    assert listed(api) == [letters[number] for number in left]


@pytest.mark.parametrize("verb", ["purge", "redrive"])
@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({}, "filter_required", ""),
        ({"all": False}, "filter_required", ""),
        ({"all": True, "ids": ["a"]}, "filter_required", ""),
        ({"filter": {}}, "filter_required", "/filter"),
        ({"filter": {"colour": "red"}}, "field_unknown", "/filter/colour"),
        ({"filter": {"died_after": "soon"}}, "delay_invalid", "/filter/died_after"),
        ({"ids": []}, "out_of_bounds", "/ids"),
    ],
)
def test_what_selects_nothing_certain_is_refused(api, verb, body, code, pointer):
    api.group()
    answer = api.post(f"groups/billing/dead-letters/{verb}", body)
    assert answer.code == code
    assert answer.pointers == [pointer]


def test_they_are_gone_after_their_own_retention(api, clock, letters):
    retention_ms = api.wiring.store.settings.dead_letter_retention_ms
    clock.advance(retention_ms - 3_000)
    assert len(listed(api)) == 3
    clock.advance(1)
    assert listed(api) == letters[:0:-1]
    assert api.get(f"groups/billing/dead-letters/{letters[0]}").status == 404
    assert api.get("groups/billing/lag").json["dead"] == 2


def test_keys_of_other_groups_see_none_of_them(api, letters):
    limited = api.as_(groups=("mail-*",))
    for path in ("", "/reasons", f"/{letters[0]}"):
        assert limited.get(f"groups/billing/dead-letters{path}").code == "forbidden"
    for verb in ("purge", "redrive"):
        answer = limited.post(f"groups/billing/dead-letters/{verb}", {"all": True})
        assert answer.code == "forbidden"
