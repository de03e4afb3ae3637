"""Finding a Java for Spark."""

import os
import subprocess
from pathlib import Path

import pytest

from analytics import java
from analytics.java import JavaMissing, find_java_home, make_java_home


def fake_java(place: Path, version: str) -> Path:
    path = place / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    path.chmod(0o755)
    return path


def test_the_machines_java_is_taken_if_it_is_new_enough(tmp_path: Path) -> None:
    fake_java(tmp_path / "jdk", "21.0.8")
    path = {"PATH": f"{tmp_path / 'jdk' / 'bin'}:{os.environ['PATH']}"}
    assert find_java_home(tmp_path, path) is None
    home = {"JAVA_HOME": str(tmp_path / "jdk"), "PATH": ""}
    assert find_java_home(tmp_path, home) == str(tmp_path / "jdk")


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "jdk", "11.0.2")
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    with pytest.raises(JavaMissing):
        find_java_home(tmp_path, {"PATH": str(tmp_path / "jdk" / "bin")})


def test_the_script_takes_away_the_one_argument_and_keeps_the_others(tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.write_text('#!/bin/sh\nfor one in "$@"; do echo "<$one>"; done\n')
    told.chmod(0o755)
    home = make_java_home(tmp_path / "home", told)
    done = subprocess.run(
        [home / "bin" / "java", "-Da=b c", "--add-modules=jdk.incubator.vector", "", "Main"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["<-Da=b c>", "<>", "<Main>"]
