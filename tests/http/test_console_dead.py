"""Dead letters in the console: by reason, driven again, mended, exported, discarded."""

import json

import pytest

from queues.models import AuditEntry, Operation
from tests.http.test_console import person_with


@pytest.fixture
def dead(console):
    """Two dead letters of the group billing, for two reasons."""
    ids = []
    console.api.group()
    for reason in ("card refused", "no such order"):
        sent = console.api.send(keys=["order-1"], tag="due", body=f"body of {reason}")
        [received] = console.api.receive()
        body = {"receipts": [received["receipt"]], "reason": reason}
        assert console.api.post("groups/billing/dead-letter", body).status == 200
        ids.append(sent["id"])
    return ids


PAGE = "/admin/groups/billing/dead-letters"


def test_dead_letters_are_listed_by_reason_and_one_by_one(console, dead):
    html = console.text(f"{PAGE}/")
    assert all(one in html for one in dead)
    assert "card refused" in html
    narrowed = console.text(f"{PAGE}/?reason=card+refused")
    assert dead[0] in narrowed
    assert dead[1] not in narrowed
    assert "billing" in console.text("/admin/dead-letters/")
    assert "2 new dead letters" in console.text("/admin/")


def test_one_dead_letter_tells_its_attempts_and_body(console, dead):
    html = console.text(f"{PAGE}/{dead[0]}/")
    assert "card refused" in html
    assert "body of card refused" in html
    viewer = person_with(console.api, "viewer")
    assert "body of card refused" not in viewer.text(f"{PAGE}/{dead[0]}/")
    assert viewer.get(f"{PAGE}/export/").status_code == 403


def test_what_is_driven_again_is_looked_at_first_and_then_received(console, dead):
    assert "Drive 1 again" in console.text(f"{PAGE}/redrive/?reason=card+refused")
    assert console.api.receive() == []
    console.post(f"{PAGE}/redrive/?reason=card+refused")
    [received] = console.api.receive()
    assert (received["id"], received["attempt"]) == (dead[0], 1)
    assert "redriven" in console.text(f"{PAGE}/{dead[0]}/")


@pytest.mark.usefixtures("dead")
def test_a_paced_redrive_is_an_operation(console):
    answer = console.post(f"{PAGE}/redrive/", messages_per_second=5)
    operation = Operation.objects.get(kind="deadletters.redrive")
    assert answer.request["PATH_INFO"] == f"/admin/operations/{operation.id}/"


def test_a_mended_dead_letter_is_sent_as_a_new_message_that_names_it(console, dead):
    assert "body of card refused" in console.text(f"{PAGE}/{dead[0]}/mend/")
    console.post(f"{PAGE}/{dead[0]}/mend/", body="mended", discard="on")
    entry = AuditEntry.objects.get(action="deadletter.mend")
    sent = console.api.get(f"messages/{entry.subject}").json
    assert (sent["body"], sent["topic"], sent["tag"]) == ("mended", "orders", "due")
    assert sent["keys"] == ["order-1"]
    assert sent["properties"] == {"edited-from": dead[0]}
    assert console.get(f"{PAGE}/{dead[0]}/").status_code == 404


def test_dead_letters_are_exported_as_json_lines(console, dead):
    answer = console.get(f"{PAGE}/export/")
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    assert {line["id"] for line in lines} == set(dead)
    assert {line["failures"][-1]["reason"] for line in lines} == {"card refused", "no such order"}
    assert AuditEntry.objects.filter(action="deadletter.export").exists()


def test_dead_letters_are_discarded_one_and_all(console, dead):
    console.post(f"{PAGE}/{dead[0]}/discard/")
    assert console.get(f"{PAGE}/{dead[0]}/").status_code == 404
    console.post(f"{PAGE}/purge/")
    assert "gave nothing up" in console.text(f"{PAGE}/")


@pytest.mark.usefixtures("dead")
def test_groups_with_dead_letters_tell_how_many_were_driven_again(console):
    assert "2 dead letters" in console.text("/admin/dead-letters/")
    console.post(f"{PAGE}/redrive/?reason=card+refused")
    html = console.text("/admin/dead-letters/")
    assert "1 dead letter<" in html
    assert 'data-label="Driven again">1<' in html
    assert "Newest death" in html
