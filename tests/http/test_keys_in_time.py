"""Keys in time: rotated with an overlap, expired, changed; and what the audit log says of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from queues.models import ApiKey, AuditEntry
from queues.problems import Problem
from queues.quotas import Quotas
from queues.services.keys import change_key, issue_key, revoke_key, rotate_key

DAY = timedelta(days=1)


def answers(api: Any, secret: str) -> int:
    api.secret = secret
    status: int = api.get("topics").status
    return status


def test_for_the_overlap_both_secrets_are_taken_and_then_the_new_one_alone(api, clock):
    old = issue_key(name="shop", by="test")
    new = rotate_key(key_id=old.key.pk, by="test", overlap=DAY)
    assert new.secret != old.secret
    assert (answers(api, old.secret), answers(api, new.secret)) == (200, 200)
    clock.advance(86_400_000 - 1)
    assert answers(api, old.secret) == 200
    clock.advance(1)
    assert (answers(api, old.secret), answers(api, new.secret)) == (401, 200)


def test_without_an_overlap_the_old_secret_is_refused_at_once(api):
    old = issue_key(name="shop", by="test")
    new = rotate_key(key_id=old.key.pk, by="test", overlap=timedelta(0))
    assert (answers(api, old.secret), answers(api, new.secret)) == (401, 200)


def test_rotating_twice_leaves_two_secrets_not_three(api):
    first = issue_key(name="shop", by="test")
    second = rotate_key(key_id=first.key.pk, by="test", overlap=DAY)
    third = rotate_key(key_id=first.key.pk, by="test", overlap=DAY)
    taken = [answers(api, one.secret) for one in (first, second, third)]
    assert taken == [401, 200, 200]


def test_a_rotated_key_keeps_its_rights_its_row_and_its_use(api):
    key = issue_key(name="shop", by="test", scopes=("send",), quotas=Quotas(messages_per_day=1))
    api.secret = key.secret
    assert api.post("topics/orders/messages", {"body": "x"}).status == 201
    api.secret = rotate_key(key_id=key.key.pk, by="test", overlap=DAY).secret
    assert api.get("topics").status == 403
    assert api.post("topics/orders/messages", {"body": "x"}).status == 429


def test_a_key_expires_to_the_millisecond_and_its_old_secret_with_it(api, clock):
    expires_at = datetime.fromtimestamp(clock.now_ms() / 1000, UTC) + timedelta(hours=1)
    old = issue_key(name="guest", by="test", expires_at=expires_at)
    new = rotate_key(key_id=old.key.pk, by="test", overlap=DAY)
    clock.advance(3_600_000 - 1)
    assert (answers(api, old.secret), answers(api, new.secret)) == (200, 200)
    clock.advance(1)
    assert (answers(api, old.secret), answers(api, new.secret)) == (401, 401)


def test_a_change_holds_for_the_next_request(api):
    key = issue_key(name="shop", by="test")
    assert answers(api, key.secret) == 200
    change_key(key_id=key.key.pk, by="test", scopes=("send",))
    assert answers(api, key.secret) == 403
    change_key(key_id=key.key.pk, by="test", scopes=("inspect",), topic_patterns=("eu-*",))
    assert answers(api, key.secret) == 200
    assert api.get("topics/orders").status == 403


def test_neither_secret_is_kept(api):
    old = issue_key(name="shop", by="test")
    new = rotate_key(key_id=old.key.pk, by="test", overlap=DAY)
    (row,) = ApiKey.objects.filter(pk=old.key.pk).values()
    assert old.secret not in str(row)
    assert new.secret not in str(row)
    told = str(list(AuditEntry.objects.values()))
    assert old.secret not in told
    assert new.secret not in told
    assert api


def test_every_control_change_says_what_was_before_and_what_is_after(api):
    key = issue_key(name="shop", by="test", scopes=("send",)).key
    change_key(key_id=key.pk, by="test", scopes=("inspect",), quotas=Quotas(messages_per_day=5))
    change_key(key_id=key.pk, by="test", scopes=("inspect",))
    rotate_key(key_id=key.pk, by="test", overlap=DAY)
    revoke_key(key_id=key.pk, by="test")
    api.put("topics/orders", {"queues": 4})
    api.put("topics/orders", {"queues": 8})
    api.delete("topics/orders")
    api.group("billing", max_retries=3)
    api.group("billing", max_retries=5)
    api.post("groups/billing/pause")
    api.delete("groups/billing")
    entries = {e["action"]: e for e in api.get("audit-log?page_size=100").json["items"]}
    changed = entries["key.change"]
    assert changed["before"] == {"scopes": ["send"], "messages_per_day": None}
    assert changed["after"] == {"scopes": ["inspect"], "messages_per_day": 5}
    assert entries["key.rotate"]["before"]["prefix"] != entries["key.rotate"]["after"]["prefix"]
    assert entries["key.revoke"]["before"]["scopes"] == ["inspect"]
    assert entries["topic.create"]["after"] == {"queues": 4}
    assert entries["topic.change"]["before"] == {"queues": 4}
    assert entries["topic.change"]["after"] == {"queues": 8}
    assert entries["topic.delete"]["before"] == {"queues": 8}
    assert entries["group.create"]["after"]["max_retries"] == 3
    assert (entries["group.change"]["before"], entries["group.change"]["after"]) == (
        {"max_retries": 3}, {"max_retries": 5},
    )  # fmt: skip
    assert entries["group.pause"]["after"] == {"paused": True}
    assert entries["group.delete"]["before"]["max_retries"] == 5
    assert entries["group.delete"]["before"]["paused"] is True


@pytest.mark.usefixtures("api")
def test_what_is_out_of_bounds_is_refused():
    key = issue_key(name="shop", by="test").key
    wrong = [
        lambda: issue_key(name="x", by="test", quotas=Quotas(messages_per_second=0)),
        lambda: issue_key(name="x", by="test", quotas=Quotas(burst_seconds=100_000)),
        lambda: change_key(key_id=key.pk, by="test", scopes=()),
        lambda: change_key(key_id=key.pk, by="test", scopes=("root",)),
        lambda: rotate_key(key_id=key.pk, by="test", overlap=timedelta(days=400)),
        lambda: rotate_key(key_id=key.pk + 1, by="test", overlap=DAY),
    ]
    for act in wrong:
        with pytest.raises(Problem):
            act()


def test_the_commands_do_the_same(api, capsys):
    call_command("create_api_key", "shop", "--scope", "send", "--messages-per-day", "2",
                 "--expires", "90d")  # fmt: skip
    first = capsys.readouterr().out.strip()
    key = ApiKey.objects.get(name="shop")
    assert key.messages_per_day == 2
    call_command("rotate_api_key", str(key.pk), "--overlap", "1h")
    second = capsys.readouterr().out.strip()
    call_command("change_api_key", str(key.pk), "--scope", "inspect", "--messages-per-day", "0")
    assert (answers(api, first), answers(api, second)) == (200, 200)
    key.refresh_from_db()
    assert key.messages_per_day is None
    assert key.expires_at is not None
    call_command("change_api_key", str(key.pk), "--never-expires", "--requests-per-second", "7")
    call_command("list_api_keys")
    assert "requests_per_second=7" in capsys.readouterr().out
    for wrong in (["rotate_api_key", "999"], ["change_api_key", str(key.pk), "--expires", "never"],
                  ["rotate_api_key", str(key.pk), "--overlap", "soon"]):  # fmt: skip
        with pytest.raises(CommandError):
            call_command(*wrong)
