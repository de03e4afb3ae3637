"""The command `verify` looks at a store's files; the store's own code does it, so it needs that."""

import os
from pathlib import Path
from typing import Annotated

import typer

from postdate.cli.outcomes import NOT_INSTALLED, command, fail
from postdate.cli.output import Json, console, show_facts, show_json, show_table

_DAMAGED, _NOT_A_STORE = 1, 2


@command
def verify(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="Default: the store below POSTDATE_DATA_DIR or ./var."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a store holds and what is wrong with it: 0 sound, 1 damaged, 2 not a store.

    It reads the files themselves, ours or a RocketMQ broker's, and changes nothing.
    """
    try:
        from queues.store.errors import StoreError  # noqa: PLC0415 (only here, and only if it is there)
        from queues.store.inspection.verify import verify_store  # noqa: PLC0415 (as above)
    except ImportError as error:
        raise fail(
            f"verify reads the store itself and needs {error.name}, which is not installed.",
            code=NOT_INSTALLED,
            hint="pip install 'postdate[server]'",
        ) from None
    root = directory or Path(os.environ.get("POSTDATE_DATA_DIR") or "var") / "store"
    try:
        layout, report = verify_store(root)
    except StoreError as error:
        raise fail(f"{error}", code=_NOT_A_STORE) from None
    findings = [
        {"path": str(one.path), "offset": one.offset, "reason": one.reason}
        for one in report.findings
    ]
    if as_json:
        found = {"root": str(layout.root), "sound": report.sound, "counts": report.counts}
        show_json({**found, "findings": findings})
    else:
        console.print(f"{layout.root}", highlight=False)
        show_facts((name, count) for name, count in sorted(report.counts.items()))
        rows = [[one["path"], one["offset"], one["reason"]] for one in findings]
        show_table(["file", "#offset", "what is wrong"], rows, empty="Nothing is wrong with it.")
    if not report.sound:
        raise typer.Exit(_DAMAGED)
