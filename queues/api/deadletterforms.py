"""The forms in which dead letters are exported: CSV for spreadsheets, NDJSON for programs.

A cell that a spreadsheet would take for a formula is written behind an apostrophe.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UNSET, Raw

from queues.api.bodyform import show_body
from queues.api.codec import encode
from queues.api.telling import user_properties
from queues.api.tellingdeath import summary_fields, tell_letter
from queues.store.chainlookup import DeadLetter

#: A form's word, and its media type.
FORMS = {"csv": "text/csv", "ndjson": "application/x-ndjson"}
_COLUMNS = (
    "id", "group", "topic", "queue", "tag", "keys", "failure_count", "reason", "created_at",
    "died_at", "redriven_at", "redriven_by", "properties", "encoding", "body",
)  # fmt: skip
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def written(letters: Iterable[DeadLetter], form: str) -> Iterator[bytes]:
    """The export, piece by piece."""
    return _csv(letters) if form == "csv" else _ndjson(letters)


def _ndjson(letters: Iterable[DeadLetter]) -> Iterator[bytes]:
    """Each as the API answers it by its id."""
    for letter in letters:
        yield encode(tell_letter(letter)) + b"\n"


def _csv(letters: Iterable[DeadLetter]) -> Iterator[bytes]:
    yield _row(_COLUMNS)
    for letter in letters:
        record = letter.record
        body, encoding = show_body(record.decoded_body(), record.flag)
        fields = summary_fields(letter) | {
            "keys": " ".join(record.keys),
            "properties": encode(user_properties(record.properties)).decode(),
            "encoding": "" if encoding is UNSET else encoding,
            "body": bytes(body).decode() if isinstance(body, Raw) else body,
        }
        yield _row([_cell(fields[name]) for name in _COLUMNS])


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _row(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()
