"""Reading shares of a log: Arrow batches of records, in the workers."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from analytics.datasource.arrow import arrow_column, arrow_schema, taken
from analytics.datasource.options import Options
from analytics.datasource.planning import Share
from analytics.log.leading import is_ours
from analytics.log.names import Names
from analytics.log.table import COLUMNS, Column, Numbers, OurTable, Texts, foreign_columns, texts_of
from analytics.log.walk import Block, Bools, Seen, walk

DAMAGED: Final = "damaged"
Conditions = dict[str, frozenset[str]]


def read_share(
    share: Share, options: Options, names: Sequence[str], conditions: Conditions
) -> Iterator[pa.RecordBatch]:
    """The records of a share as Arrow batches with these columns."""
    schema = arrow_schema(COLUMNS, names)
    known = Names()
    for piece in share.pieces:
        seen = Seen()
        told = 0
        for block in walk(piece, seen, options.verify):
            for part, ours in _parts(block):
                batch = _batch(part, ours, options, names, conditions, known, schema)
                if batch.num_rows:
                    yield batch
            if options.damaged_rows and len(seen.damages) > told:
                yield _damaged_batch(seen.damages[told:], names, schema)
                told = len(seen.damages)
        if options.damaged_rows and seen.damaged > told:
            yield _damaged_batch(seen.damages[told:], names, schema)


def _parts(block: Block) -> Iterator[tuple[Block, bool]]:
    """The block, in stretches that are ours or not."""
    ours = is_ours(block)
    if ours.all():
        yield block, True
        return
    bounds = [0, *(np.flatnonzero(ours[1:] != ours[:-1]) + 1).tolist(), len(ours)]
    for start, stop in itertools.pairwise(bounds):
        yield block.take(slice(start, stop)), bool(ours[start])


def _batch(
    block: Block, ours: bool, options: Options, names: Sequence[str], conditions: Conditions,
    known: Names, schema: pa.Schema,
) -> pa.RecordBatch:  # fmt: skip
    needed = dict.fromkeys((*names, *(_filtering(options, conditions))))
    if ours:
        table = OurTable(block, known)
        columns: dict[str, Column] = {name: table.column(name) for name in needed}
    else:
        columns = foreign_columns(block, list(needed), options.precision_ms)
    chosen = _chosen(columns, options, conditions, len(block.ats))
    arrays = [
        arrow_column(name, columns[name] if chosen is None else taken(columns[name], chosen))
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _filtering(options: Options, conditions: Conditions) -> list[str]:
    """The columns that decide which records are wanted."""
    found = list(conditions)
    if options.topics is not None:
        found.append("topic")
    if options.from_ms is not None or options.to_ms is not None:
        found.append("stored")
    return found


def _chosen(
    columns: dict[str, Column], options: Options, conditions: Conditions, count: int
) -> Bools | None:
    wanted = dict(conditions)
    if options.topics is not None:
        wanted["topic"] = options.topics & wanted.get("topic", options.topics)
    chosen: Bools = np.ones(count, np.bool_)
    for name, values in wanted.items():
        column = columns[name]
        assert isinstance(column, Texts)  # noqa: S101 (conditions are on texts)
        numbers = [number for number, text in enumerate(column.texts) if text in values]
        chosen &= np.isin(column.numbers, numbers)
    if options.from_ms is not None or options.to_ms is not None:
        stored = columns["stored"]
        assert isinstance(stored, Numbers)  # noqa: S101 (a time is a number)
        if options.from_ms is not None:
            chosen &= stored.values >= options.from_ms
        if options.to_ms is not None:
            chosen &= stored.values < options.to_ms
    return None if chosen.all() else chosen


def _damaged_batch(
    damages: Sequence[tuple[int, str]], names: Sequence[str], schema: pa.Schema
) -> pa.RecordBatch:
    """A row for each stretch that holds no readable record: where it begins, and why."""
    told: dict[str, Column] = {
        "log_offset": Numbers(np.array([offset for offset, _ in damages], np.int64)),
        "event": texts_of([DAMAGED] * len(damages)),
        "reason": texts_of([reason for _, reason in damages]),
    }
    arrays = [
        arrow_column(name, told[name]) if name in told else pa.nulls(len(damages), field.type)
        for name, field in zip(names, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
