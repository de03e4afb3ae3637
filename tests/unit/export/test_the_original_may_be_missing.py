"""Where RocketMQ cannot be had, `make interop` says what is missing and goes on."""

from pathlib import Path
from typing import Any

from tests.support import rocketmq


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def missing(tmp_path: Path, monkeypatch: Any, **programs: str) -> str | None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in programs.items():
        program(folder, name, text)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("ROCKETMQ_LIB", raising=False)
    monkeypatch.setattr(rocketmq, "CACHE", tmp_path / "cache")
    return rocketmq.why_not()


def test_without_java_it_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    assert "no java" in (missing(tmp_path, monkeypatch) or "")


def test_without_maven_it_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    assert "no mvn" in (missing(tmp_path, monkeypatch, java="", javac="") or "")


def test_without_a_network_it_tells_what_maven_said(tmp_path: Path, monkeypatch: Any) -> None:
    said = "echo 'Unknown host'; exit 1"
    reason = missing(tmp_path, monkeypatch, java="", javac="", mvn=said)
    assert "Maven could not fetch" in (reason or "")
    assert "Unknown host" in (reason or "")
    assert list((tmp_path / "cache").iterdir()) == []
