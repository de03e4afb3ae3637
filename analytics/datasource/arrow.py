"""From columns of the numpy core to Arrow batches of the schema that was asked for."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from analytics.log.facts import Rows, Series
from analytics.log.table import COLUMNS, Column, Numbers, Texts
from analytics.log.walk import Bools

_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
#: The columns of facts: the series', the bucket, and what is summed.
FACT_COLUMNS: Final = {
    "fact": "string", "quarter_ms": "bigint", "topic": "string", "kind": "string",
    "level": "int", "group": "string", "attempt": "int", "reason": "string", "bucket": "int",
    "n": "bigint", "total_ms": "bigint", "max_ms": "bigint",
}  # fmt: skip


def ddl(columns: dict[str, str]) -> str:
    """A schema in Spark's words."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def arrow_schema(columns: dict[str, str], names: Sequence[str]) -> pa.Schema:
    """A schema in Arrow's words, of some of the columns."""
    return pa.schema([(name, _TYPES[columns[name]]) for name in names])


def arrow_column(name: str, column: Column) -> pa.Array:
    """One column of the log's table."""
    kind = _TYPES[COLUMNS[name]]
    if isinstance(column, Texts):
        numbers = pa.array(column.numbers, mask=column.numbers < 0)
        return pa.array(list(column.texts), pa.string()).take(numbers)
    unknown = None if column.known is None else ~column.known
    values = column.values
    if pa.types.is_timestamp(kind):
        return pa.array(values.astype(np.int64) * 1000, pa.int64(), mask=unknown).view(kind)
    return pa.array(values, kind, mask=unknown)


def taken(column: Column, chosen: Bools) -> Column:
    """Some places of a column."""
    if isinstance(column, Texts):
        return Texts(column.numbers[chosen], column.texts)
    return Numbers(column.values[chosen], None if column.known is None else column.known[chosen])


def fact_batch(series: Sequence[Series], rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of facts."""
    numbers = pa.array(rows.series)
    columns: dict[str, pa.Array] = {
        name: pa.array([one[place] for one in series], schema.field(name).type).take(numbers)
        for place, name in enumerate(Series._fields)
        if name in schema.names
    }
    columns["bucket"] = pa.array(rows.bucket.astype(np.int32))
    columns["n"] = pa.array(rows.count)
    columns["total_ms"] = pa.array(rows.total_ms)
    columns["max_ms"] = pa.array(rows.max_ms)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
