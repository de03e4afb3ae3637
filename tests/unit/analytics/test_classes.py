"""When the archive of Spark's classes is made, used, and left alone."""

import os
from pathlib import Path

import pyspark
import pytest

from analytics.jobs.classes import sharing


@pytest.fixture(autouse=True)
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "jdk"
    for name in ("bin/java", "lib/server/classes.jsa"):
        (home / name).parent.mkdir(parents=True)
        (home / name).touch()
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


def made_at(place: Path) -> Path:
    """Where the archive will be."""
    return Path(sharing(place, make=True).partition("-XX:ArchiveClassesAtExit=")[2])


def test_a_run_that_may_makes_the_archive_and_every_later_one_uses_it(tmp_path: Path) -> None:
    place = tmp_path / "java"
    assert sharing(place, make=False) == ""
    archive = made_at(place)
    assert archive.parent == place
    archive.write_bytes(b"\xf0\x0b\xab\xa8" + bytes(100))
    for make in (True, False):
        assert sharing(place, make=make).endswith(f"-XX:SharedArchiveFile={archive}")


def test_an_archive_without_its_header_is_made_again_once_nobody_writes_it(tmp_path: Path) -> None:
    archive = made_at(tmp_path)
    archive.write_bytes(bytes(100))
    assert sharing(tmp_path, make=True) == ""
    os.utime(archive, (1, 1))
    assert sharing(tmp_path, make=True).endswith(f"-XX:ArchiveClassesAtExit={archive}")
    assert not archive.exists()


def test_archives_of_another_java_are_removed(tmp_path: Path) -> None:
    other = tmp_path / "classes-00000000.jsa"
    other.touch()
    sharing(tmp_path, make=True)
    assert not other.exists()


def test_a_java_without_an_archive_of_its_own_makes_none(tmp_path: Path, java: Path) -> None:
    (java / "lib" / "server" / "classes.jsa").unlink()
    assert sharing(tmp_path, make=True) == ""
    assert sharing(tmp_path / "a place with spaces", make=True) == ""


def test_a_spark_that_came_in_a_zip_has_a_jvm_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "pyspark.zip"
    packed.touch()
    monkeypatch.setattr(pyspark, "__file__", str(packed / "pyspark" / "__init__.py"))
    assert sharing(tmp_path / "java", make=True) == ""
    assert not (tmp_path / "java").exists()
