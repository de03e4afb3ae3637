"""The facts of a log, folded where they are read: a hundred rows for thousands of records.

Not a data source: Spark starts a process to look sources up, one to make the source and one to plan
each first read, and a run that lives for seconds waits for every one of them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from analytics.datasource.arrow import FACT_COLUMNS, arrow_schema, ddl, fact_batch
from analytics.datasource.options import Options
from analytics.datasource.planning import Share, plan
from analytics.log.extent import find_extent
from analytics.log.fold import Fold
from analytics.log.leading import may_deliver
from analytics.log.lookback import Lookback
from analytics.log.walk import Seen, walk

_SCHEMA: Final = arrow_schema(FACT_COLUMNS, tuple(FACT_COLUMNS))


def facts_of(spark: SparkSession, root: Path, **options: str) -> DataFrame:
    """The facts of a log, with the columns `FACT_COLUMNS`; `options` are those of ``commitlog``.

    Each worker's rows are its own; what is asked for is their sum. A row of the fact ``read``
    tells, in `reason`, how many records and damaged stretches a worker met. What is read is settled
    now, in this process. Raises `OptionInvalid`, `NotAStore`; `SegmentRemoved` where the log no
    longer has the range, also out of the query (as Spark's error, which tells it).
    """
    asked = Options.read({**options, "path": str(root)})
    _, shares = plan(asked)

    def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield fold_share(shares[number], asked)

    numbers = spark.range(0, len(shares), 1, len(shares))
    return numbers.mapInArrow(fold, ddl(FACT_COLUMNS))


def fold_share(share: Share, options: Options) -> pa.RecordBatch:
    """The facts of one share, in a worker."""
    only = options.deliveries_only
    lookback = Lookback(find_extent(options.path))
    fold = Fold(lookback.due_at, options.precision_ms, deliveries_only=only)
    seen = Seen()
    for piece in share.pieces:
        for block in walk(piece, seen, options.verify, may_deliver if only else None):
            fold.add(block)
    fold.note_read(seen)
    return fact_batch(fold.tally.series, fold.tally.rows(), _SCHEMA)
