"""Output: tables for people, JSON for scripts; `--json` decides."""

import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from postdate.client.bignumbers import encode

Json = Annotated[bool, typer.Option("--json", help="JSON instead of tables.")]

_ID_CHARACTERS = 32
#: C0 and C1 with DEL, but for tab and newline.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
#: Where the output goes to a file or a pipe, there is room for whole lines.
_WIDTH_ELSEWHERE = 200

console = Console(width=None if sys.stdout.isatty() else _WIDTH_ELSEWHERE)


def show_json(value: object) -> None:
    """One value, indented for whoever looks, readable for whatever parses."""
    sys.stdout.write(msgspec.json.format(encode(value), indent=2).decode() + "\n")


def show_line(value: object) -> None:
    """One value of a stream, on one line, at once."""
    sys.stdout.write(encode(value).decode() + "\n")
    sys.stdout.flush()


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """A table; columns that begin with `#` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column.startswith("#")
        table.add_column(
            column.lstrip("#"),
            justify="right" if right else "left",
            # Half an id is none: it is what the next command is given.
            no_wrap=column == "id",
            min_width=_ID_CHARACTERS if column == "id" else None,
        )
    for row in rows:
        table.add_row(*(escape(tell(cell)) for cell in row))
    console.print(table if table.row_count else empty, highlight=False)


def show_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line; what is None is left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        if value is not None:
            table.add_row(name, escape(tell(value)))
    console.print(table, highlight=False)


def visible(text: str) -> str:
    """A text whose control characters are told and not obeyed by a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def tell(value: Any) -> str:
    """A value in a cell; what others wrote cannot steer the terminal."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, int):
        return f"{value:,}"
    return visible(encode(value).decode())


def short(text: str, *, characters: int = 60) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1] + "…"


def progress_bar() -> Progress:
    """A bar with counts, on the standard error: the output stays clean."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
