"""`manage.py rocketmq_export`: what was declared and consumed over the API goes along."""

import errno
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from queues.selectors import control
from queues.store.disk import Disk
from queues.store.export import freshlog
from queues.store.inspection.dump import dump_records
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import find_layout


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, settings: Any, monkeypatch: Any) -> None:
    config = settings.POSTDATE
    settings.POSTDATE = config.model_copy(update={"data_dir": tmp_path})
    monkeypatch.setattr(freshlog, "SEGMENT_BYTES", 1 << 20)


def export(target: Path, *more: str) -> tuple[int, str, str]:
    out, error = StringIO(), StringIO()
    try:
        call_command("rocketmq_export", str(target), *more, stdout=out, stderr=error)
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue(), error.getvalue()
    except CommandError as refused:  # The command line prints it and ends with its code.
        return refused.returncode, out.getvalue(), str(refused)
    return 0, out.getvalue(), error.getvalue()


def test_topics_groups_offsets_and_messages_go_along(api: Any, tmp_path: Path) -> None:
    api.put("topics/orders", {"queues": 2})
    api.group("billing")
    sent = [api.send(body=f"order {number}", keys=[f"k{number}"]) for number in range(6)]
    waits = api.send(delay_ms=60_000)
    told = api.receive(max_messages=3)
    receipts = [message["receipt"] for message in told]
    assert api.post("groups/billing/ack", {"receipts": receipts}).status == 200
    code, out, error = export(tmp_path / "out", "--json", "--broker-name", "b7")
    assert code == 0, error
    assert "100 %" in error
    values = json.loads(out)
    assert values["kept"] == {"ready": 6, "timed": 1}
    found = list(dump_records(find_layout(Disk(), tmp_path / "out"), Report()))
    assert {record["msg_id"] for record in found} == {one["id"] for one in [*sent, waits]}
    config = tmp_path / "out" / "config"
    topics = json.loads((config / "topics.json").read_text())["topicConfigTable"]
    assert topics["orders"]["readQueueNums"] == 2
    groups = json.loads((config / "subscriptionGroup.json").read_text())
    assert groups["subscriptionGroupTable"]["billing"]["retryMaxTimes"] == 16
    offsets = json.loads((config / "consumerOffset.json").read_text())["offsetTable"]
    assert sum(offsets["orders@billing"].values()) == 3
    assert "brokerName=b7" in (tmp_path / "out" / "broker.conf").read_text()
    assert (tmp_path / "out" / "abort").read_bytes() == b""


def test_a_directory_in_use_is_refused_with_exit_code_2(api: Any, tmp_path: Path) -> None:
    api.send()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    code, out, error = export(tmp_path / "out")
    assert (code, out) == (2, "")
    assert "empty directory" in error


def test_without_a_store_nothing_is_made(tmp_path: Path, settings: Any) -> None:
    settings.POSTDATE = settings.POSTDATE.model_copy(update={"data_dir": tmp_path / "nowhere"})
    code, _, error = export(tmp_path / "out")
    assert code == 2
    assert "commitlog" in error
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "out").exists()


def no_such_table(*_: Any) -> Any:
    raise OperationalError("no such table: queues_topic")


def test_a_directory_inside_the_store_is_refused(api: Any, tmp_path: Path) -> None:
    api.send()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    for inside in ("store", "store/out", "link/commitlog/out", "store/../store/out"):
        code, out, error = export(tmp_path / inside)
        assert (code, out) == (2, "")
        assert "inside the store" in error
    assert not (tmp_path / "store" / "out").exists()


@pytest.mark.parametrize("target", ["file", "file/out", "/proc/out", "x" * 5000])
def test_a_directory_that_cannot_be_made_is_refused_in_one_line(
    api: Any, tmp_path: Path, target: str
) -> None:
    api.send()
    (tmp_path / "file").touch()
    code, out, error = export(tmp_path / target)
    assert (code, out) == (2, "")
    assert "cannot be made or written" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("option", ["--broker-name", "--cluster"])
@pytest.mark.parametrize("name", ["", "a\nb=c", "a b", "a=b", "a\\", "ä", "x" * 128])
def test_a_name_that_rocketmq_would_not_take_is_refused(
    tmp_path: Path, option: str, name: str
) -> None:
    with pytest.raises(CommandError, match="letters, digits"):
        call_command("rocketmq_export", str(tmp_path / "out"), f"{option}={name}")
    assert not (tmp_path / "out").exists()


def test_without_a_database_one_sentence_says_what_to_run(api: Any, tmp_path: Path) -> None:
    api.send()
    control.cache.forget()
    with connection.execute_wrapper(no_such_table):
        code, out, error = export(tmp_path / "out")
    assert (code, out) == (2, "")
    assert "no such table" in error
    assert "manage.py bootstrap" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "error", [NotADirectoryError, FileExistsError, IsADirectoryError], ids=lambda one: one.__name__
)
def test_a_path_of_the_store_of_the_wrong_kind_is_named(
    api: Any, tmp_path: Path, monkeypatch: Any, error: type[OSError]
) -> None:
    api.send()

    def refuse(*_: object, **__: object) -> None:
        raise error(errno.EIO, "It is of the wrong kind", "/data/store/consumequeue")

    monkeypatch.setattr("queues.management.commands.rocketmq_export.find_destination", refuse)
    code, _, told = export(tmp_path / "out")
    assert code == 2
    assert told.startswith("/data/store/consumequeue: It is of the wrong kind")
