"""Locked requirements: complete, hashed, and silent about where they come from."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements", "requirements-dev", "requirements-analytics")


def names(path: Path) -> set[str]:
    """The packages that a `.in` file asks for, without extras and versions."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    asked = [line for line in lines if line and not line.startswith(("#", "-"))]
    return {name_of(line) for line in asked}


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return match[0].lower()


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_carries_a_hash(name: str) -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", (ROOT / f"{name}.txt").read_text())
    pinned = [block for block in blocks if re.match(r"[a-z0-9._-]+==", block)]
    assert pinned
    assert [block.split()[0] for block in pinned if "--hash=sha256:" not in block] == []


@pytest.mark.parametrize("name", LOCKS)
def test_no_lock_names_an_address(name: str) -> None:
    text = (ROOT / f"{name}.txt").read_text()
    assert not re.search(r"://|index-url|find-links|trusted-host", text)


@pytest.mark.parametrize("name", LOCKS)
def test_every_asked_package_is_locked(name: str) -> None:
    locked = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / f"{name}.txt").read_text(), re.MULTILINE))
    assert names(ROOT / f"{name}.in") - locked == set()


def test_the_package_asks_for_what_the_locks_hold() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    server = project["dependencies"] + project["optional-dependencies"]["server"]
    assert {name_of(line) for line in server} == names(ROOT / "requirements.in")
    analytics = project["optional-dependencies"]["analytics"]
    assert {name_of(line) for line in analytics} == names(ROOT / "requirements-analytics.in")
    development = pyproject["dependency-groups"]["dev"]
    assert {name_of(line) for line in development} == names(ROOT / "requirements-dev.in")


def test_every_dependency_has_its_reason_in_contributing() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text()
    asked = set().union(*(names(ROOT / f"{name}.in") for name in LOCKS))
    assert {name for name in asked if not re.search(rf"\b{re.escape(name)}\b", told)} == set()


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_of_a_lock_is_one_that_the_installer_knows(name: str) -> None:
    known = re.compile(r"#|    (--hash=sha256:|# )|[a-z0-9._-]+(\[[a-z0-9,._-]+\])?==|$")
    lines = (ROOT / f"{name}.txt").read_text().splitlines()
    assert [line for line in lines if not known.match(line)] == []
