"""The documents: what they name exists, and what exists is in them."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from postdate.config import Config, variable_names

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "docs/operating/configuration.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("platform/*.md")])


def documented_rows() -> dict[str, tuple[str, str]]:
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| (.+?) \| (.+) \|$", CONFIGURATION.read_text(), re.MULTILINE
    )
    return {name: (default, price) for name, default, price in rows}


def test_every_variable_is_documented_and_no_other() -> None:
    assert set(documented_rows()) == set(variable_names().values())


def test_every_variable_tells_its_price() -> None:
    short = [name for name, (_, price) in documented_rows().items() if len(price.split()) < 8]
    assert short == []


@pytest.mark.parametrize(
    "field", ["host", "port", "flush", "web_threads", "timer_engine", "reports", "delay_levels"]
)
def test_a_plain_default_is_the_documented_one(field: str) -> None:
    default = Config.model_fields[field].default
    assert documented_rows()[variable_names()[field]][0] == f"`{default}`"


def test_the_example_file_names_only_what_is_read() -> None:
    named = set(re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert named - set(variable_names().values()) == {"POSTGRES_PASSWORD"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_in_a_document_exists(path: Path) -> None:
    text = path.read_text()
    commands = set(re.findall(r"manage\.py ([a-z_]+)", text))
    assert commands - set(get_commands()) == set()
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)", text)) - targets == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_in_a_document_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_makefile_has_few_targets_beside_help_and_each_says_what_it_does() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", text, re.MULTILINE)
    assert phony is not None
    told = re.findall(r"^([a-z]+):.*## .{10,}$", text, re.MULTILINE)
    assert sorted(told) == sorted(phony[1].split())
    assert len(set(told) - {"help"}) <= 15
