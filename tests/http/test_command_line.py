"""The command line against the server itself, in one process."""

import csv
import io
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from postdate.cli import benching, connecting, consuming
from postdate.cli.app import app
from postdate.client import Client
from postdate.wsgi import application

Run = Callable[..., Result]
NOBODY = "0" * 32


@pytest.fixture
def run(api: Any, monkeypatch: Any) -> Run:
    """Runs a command with the key in the environment; fails on an unexpected exit code."""
    http = httpx.Client(transport=httpx.WSGITransport(app=application))
    monkeypatch.setattr(connecting, "Client", partial(Client, http=http))

    def invoke(
        *arguments: str, exits: int = 0, given: str | None = None, key: str | None = ""
    ) -> Result:
        environment = {
            "POSTDATE_URL": "http://testserver",
            "POSTDATE_API_KEY": None if key is None else key or api.secret,
        }
        done = CliRunner().invoke(app, arguments, input=given, env=environment)
        assert done.exit_code == exits, (done.output, done.exception)
        return done

    return invoke


def made(run: Run, *arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def test_a_message_goes_through_all_its_commands(run: Run) -> None:
    sent = made(run, "send", "orders", '{"order": 7}', "--body-json", "--delay", "30m",
                "--key", "order-7", "--property", "colour=red")  # fmt: skip
    shown = made(run, "get", sent["id"])
    assert (shown["body"], shown["keys"]) == ({"order": 7}, ["order-7"])
    assert shown["properties"] == {"colour": "red"}
    moved = made(run, "move", sent["id"], "--delay", "1h", "--if-version", "1")
    assert moved["due_at_ms"] - sent["due_at_ms"] == 30 * 60_000
    run("move", sent["id"], "--delay", "1h", "--if-version", "1", exits=6)
    assert made(run, "cancel", sent["id"])["outcome"] == "cancelled"
    assert "already_cancelled" in run("cancel", sent["id"]).stdout
    assert made(run, "restore", sent["id"])["state"] == "scheduled"
    assert sent["id"] in run("messages").stdout
    assert made(run, "deliver-now", sent["id"])["id"] == sent["id"]


def test_a_number_that_python_cannot_hold_is_sent_and_shown_with_its_digits(run: Run) -> None:
    sent = made(run, "send", "orders", '{"a":[-1e999]}', "--body-json", "--delay", "30m")
    assert "-1e999" in run("get", sent["id"], "--json").stdout
    assert "[-1e999]" in run("get", sent["id"]).stdout


def test_lines_of_a_file_become_messages(run: Run, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("a\nb\n\nc\n")
    assert "3 messages are stored" in run("send", "orders", "--lines", str(lines)).stdout
    items = run("send", "orders", "--lines", "-", "--json", given="1\n2\n").stdout.splitlines()
    assert [json.loads(item)["status"] for item in items] == [201, 201]
    refused = run("send", "orders", "--lines", "-", "--delay", "soon", given="1\n", exits=1)
    assert "delay_invalid" in refused.stderr


def test_bytes_of_a_file_are_sent_as_bytes(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"\x00\xff")
    sent = made(run, "send", "orders", "--file", str(file), "--delay", "1h")
    assert made(run, "get", sent["id"])["encoding"] == "base64"


def test_received_messages_are_acked_once_they_are_shown(run: Run, api: Any) -> None:
    api.group("billing")
    api.send("orders", body="first")
    shown = made(run, "receive", "billing", "--no-ack")
    assert [message["body"] for message in shown["messages"]] == ["first"]
    api.post("groups/billing/ack", {"receipts": [one["receipt"] for one in shown["messages"]]})
    api.send("orders", body="second")
    assert "second" in run("receive", "billing").stdout
    assert api.get("groups/billing/lag").json["queues"][0]["leased"] == 0
    assert "Nothing is ready" in run("receive", "billing").stdout


def test_tail_shows_what_arrives_and_leaves_nothing_behind(run: Run, api: Any) -> None:
    for body in ("one", "two", "three"):
        api.send("orders", body=body, tag="T")
    shown = run("tail", "orders", "--earliest", "--tags", "T", "--count", "3", "--json").stdout
    assert sorted(json.loads(line)["body"] for line in shown.splitlines()) == [
        "one",
        "three",
        "two",
    ]
    assert api.get("groups").json["items"] == []


def test_what_there_is_comes_as_tables_and_as_json(run: Run, api: Any) -> None:
    api.group("billing")
    api.send("orders", delay_level=3)
    assert made(run, "levels")[2]["pending"] == 1
    assert made(run, "wheel")["pending"] == 0
    assert made(run, "groups")[0]["group"]["group"] == "billing"
    assert made(run, "groups", "billing")["lag"]["retrying"] == 0
    assert made(run, "topics")[0]["topic"] == "orders"
    for command in ("levels", "wheel", "loops", "groups", "topics", "messages"):
        assert run(command).stdout.strip()
    assert "billing" in run("groups", "billing").stdout
    assert "NOT OK" in run("status", exits=7).stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("get", NOBODY), 3),
        (("receive", "nobody"), 3),
        (("send", "orders", "x", "--delay", "soon"), 1),
        (("send", "orders"), 2),
        (("send", "orders", "{", "--body-json"), 2),
        (("send", "orders", "x", "--property", "colour"), 2),
        (("send", "orders", "--file", "/etc"), 2),
        (("send", "orders", "--lines", "/etc"), 2),
        (("send", "orders", "--lines", "/no/such/file"), 2),
        (("tail",), 2),
        (("dead-letters", "redrive", "billing"), 2),
        (("no-such-command",), 2),
    ],
)
def test_the_exit_code_says_what_is_the_matter(run: Run, arguments: Any, code: int) -> None:
    done = run(*arguments, exits=code)
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


def test_a_wrong_key_and_an_absent_server_are_said_to_be_so(run: Run, monkeypatch: Any) -> None:
    assert "POSTDATE_API_KEY" in run("levels", key="x" * 40, exits=4).stderr
    monkeypatch.setattr(connecting, "Client", Client)
    done = run("--url", "http://127.0.0.1:1", "--patience", "0", "levels", exits=5)
    assert "running" in done.stderr


def test_verify_looks_at_the_files(run: Run, api: Any, tmp_path: Path) -> None:
    api.send("orders")
    api.wiring.store.flush()
    found = made(run, "verify", str(tmp_path / "store"))
    assert found["sound"]
    assert found["counts"]["records"] == 1
    (tmp_path / "empty").mkdir()
    run("verify", str(tmp_path / "empty"), exits=2)


def test_dead_letters_are_exported_as_the_server_does(run: Run, api: Any) -> None:
    api.group("billing")
    reasons = ["no stock", "=cmd|x", "-1", "@t", "+1", "\tx", "\rx"]
    for number, reason in enumerate(reasons):
        api.send("orders", body={"n": number}, properties={"p": "v"}, tag=f"T{number % 2}")
        (message,) = api.receive()
        body = {"receipts": [message["receipt"]], "reason": reason}
        assert api.post("groups/billing/dead-letter", body).json["results"][0]["outcome"] == "dead"
    text = run("dead-letters", "export", "billing", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert {row["reason"] for row in rows} == {"no stock", *(f"'{one}" for one in reasons[1:])}
    assert {row["body"] for row in rows} == {f'{{"n": {number}}}' for number in range(7)}
    assert {row["properties"] for row in rows} == {'{"p":"v"}'}
    line = run("dead-letters", "export", "billing", "--reason", "no stock").stdout
    assert json.loads(line)["body"] == {"n": 0}


def test_a_line_that_is_not_json_is_said_to_be_so(run: Run) -> None:
    done = run("send", "orders", "--lines", "-", "--body-json", given="{\n", exits=2)
    assert "not JSON" in done.stderr


def test_control_characters_are_told_and_do_not_reach_the_terminal(run: Run, api: Any) -> None:
    evil = "\x1b]0;owned\x07\x9b2J\x7f tab\tend"
    api.group("billing")
    sent = api.send("orders", body=evil, properties={"p": "\x9b2J"})
    shown = [run("get", sent["id"]).stdout, run("receive", "billing", "--no-ack").stdout]
    shown.append(run("tail", "orders", "--earliest", "--count", "1").stdout)
    sent = api.send("orders", body=evil)
    (message,) = api.receive()
    body = {"receipts": [message["receipt"]], "reason": evil}
    api.post("groups/billing/dead-letter", body)
    letters = ["list", "reasons"]
    shown += [run("dead-letters", command, "billing").stdout for command in letters]
    shown.append(run("dead-letters", "show", "billing", sent["id"]).stdout)
    shown.append(run("get", "\x1b[31m", exits=3).stderr)
    for text in shown:
        assert "\\x1b" in text
        assert not {"\x1b", "\x07", "\x9b", "\x7f"} & {*text}
    assert made(run, "get", sent["id"])["body"] == evil


def test_cancel_tries_every_id_and_tells_the_worst(run: Run, api: Any) -> None:
    waits, gone = (api.send("orders", delay_ms=delay)["id"] for delay in (60_000, 0))
    done = run("cancel", NOBODY, waits, gone, exits=6)
    assert f"{waits} cancelled" in " ".join(done.stdout.split())
    assert NOBODY in done.stderr
    assert gone in done.stderr
    lines = run("cancel", NOBODY, waits, "--json", exits=3).stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": NOBODY, "outcome": "message_not_found"},
        {"id": waits, "outcome": "already_cancelled"},
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_bench_leaves_nothing_behind_when_it_is_stopped(
    run: Run, api: Any, monkeypatch: Any, number: int
) -> None:
    send = benching._send

    def send_and_stop(*arguments: Any, **named: Any) -> float:
        taken_s = send(*arguments, **named)
        os.kill(os.getpid(), number)
        return taken_s

    monkeypatch.setattr(benching, "_send", send_and_stop)
    handler = signal.getsignal(number)
    run("bench", "--messages", "2", "--delay", "1h", "--consumers", "1", exits=130)
    assert api.get("groups").json["items"] == []
    assert api.get("topics").json["items"] == []
    assert signal.getsignal(number) == handler


def test_tail_that_is_stopped_says_so_and_leaves_nothing_behind(
    run: Run, api: Any, monkeypatch: Any
) -> None:
    api.send("orders")
    show = consuming._show_one

    def show_and_stop(message: Any) -> None:
        show(message)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(consuming, "_show_one", show_and_stop)
    run("tail", "orders", "--earliest", exits=130)
    assert api.get("groups").json["items"] == []
    api.group("billing")
    run("tail", "--group", "billing", exits=130)


def test_ids_that_are_no_dead_letters_are_said_to_be_none(run: Run, api: Any) -> None:
    api.group("billing")
    sent = api.send("orders")["id"]
    (message,) = api.receive()
    api.post("groups/billing/dead-letter", {"receipts": [message["receipt"]]})
    assert "not_found" in run("dead-letters", "redrive", "billing", NOBODY, exits=3).stdout
    done = run("dead-letters", "discard", "billing", sent, NOBODY, exits=3)
    assert "1 are discarded." in done.stdout
    assert "1 of the ids" in done.stderr


def test_a_wrong_address_and_a_missing_key_have_hints_of_their_own(
    run: Run, monkeypatch: Any
) -> None:
    monkeypatch.setattr(connecting, "Client", Client)
    wrong = run("--url", "nonsense", "topics", exits=2).stderr
    assert "POSTDATE_URL" in wrong
    assert "first key" not in wrong
    assert "first key" in run("topics", key=None, exits=4).stderr
