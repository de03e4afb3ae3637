"""The data sources ``commitlog`` and ``commitlog_facts``, as Spark knows them.

There is no pruning of columns in Spark's Python sources: give the columns that are needed with
``.schema("topic string, lateness_ms bigint")``; the others are then never made.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    In,
    InputPartition,
)
from pyspark.sql.types import StructType

from analytics.datasource.arrow import FACT_COLUMNS, arrow_schema, ddl, fact_batch
from analytics.datasource.options import OptionInvalid, Options
from analytics.datasource.planning import Share, plan
from analytics.datasource.reading import Conditions, read_share
from analytics.datasource.streaming import CommitLogStreamReader
from analytics.log.extent import find_extent
from analytics.log.fold import Fold
from analytics.log.leading import may_deliver
from analytics.log.lookback import Lookback
from analytics.log.table import COLUMNS
from analytics.log.walk import Seen, walk

#: Columns on which a query's conditions can be taken.
_CONDITIONAL = ("topic", "event")


def register(spark: SparkSession) -> None:
    """Make the sources known to a session."""
    spark.dataSource.register(CommitLogSource)
    spark.dataSource.register(FactsSource)


class SharePartition(InputPartition):
    """A share, as Spark hands it to a worker."""

    def __init__(self, share: Share) -> None:
        self.share = share


class CommitLogSource(DataSource):
    """The records of a CommitLog, ours or a broker's."""

    @classmethod
    def name(cls) -> str:
        return "commitlog"

    def schema(self) -> str:
        return ddl(COLUMNS)

    def reader(self, schema: StructType) -> "CommitLogReader":
        options = Options.read(self.options)
        kind = PushingReader if options.pushdown else CommitLogReader
        return kind(options, known_columns(schema, COLUMNS))

    def streamReader(self, schema: StructType) -> CommitLogStreamReader:  # noqa: N802 (Spark's name)
        return CommitLogStreamReader(Options.read(self.options), known_columns(schema, COLUMNS))


class CommitLogReader(DataSourceReader):
    """Reads what there is now."""

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options, self._names = options, names
        self._conditions: Conditions = {}

    def partitions(self) -> Sequence[InputPartition]:
        _, shares = plan(self._options)
        return [SharePartition(share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SharePartition)  # noqa: S101 (Spark gives back what it got)
        return read_share(partition.share, self._options, self._names, self._conditions)


class PushingReader(CommitLogReader):
    """Takes conditions of the query; only with the option, since Spark refuses it by default."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's name)
        """Keep what is applied here, give back the rest."""
        for one in filters:
            values = _values(one)
            if values is None:
                yield one
                continue
            name, wanted = values
            self._conditions[name] = wanted & self._conditions.get(name, wanted)


def _values(one: Filter) -> tuple[str, frozenset[str]] | None:
    if not isinstance(one, EqualTo | In) or one.attribute not in [(n,) for n in _CONDITIONAL]:
        return None
    found = (one.value,) if isinstance(one, EqualTo) else one.value
    return one.attribute[0], frozenset(str(value) for value in found)


class FactsSource(DataSource):
    """The facts of a log, folded where they are read: a hundred rows for thousands of records.

    Each partition's rows are its own; what is asked for is their sum. A row of the fact ``read``
    tells, in `bucket` and `n`, how many records and damaged stretches a partition met.
    """

    @classmethod
    def name(cls) -> str:
        return "commitlog_facts"

    def schema(self) -> str:
        return ddl(FACT_COLUMNS)

    def reader(self, schema: StructType) -> "FactsReader":
        return FactsReader(Options.read(self.options), known_columns(schema, FACT_COLUMNS))


class FactsReader(DataSourceReader):
    """Folds what there is now."""

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options, self._names = options, names

    def partitions(self) -> Sequence[InputPartition]:
        _, shares = plan(self._options)
        return [SharePartition(share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SharePartition)  # noqa: S101 (Spark gives back what it got)
        options = self._options
        only = options.deliveries_only
        lookback = Lookback(find_extent(options.path))
        fold = Fold(lookback.due_at, options.precision_ms, deliveries_only=only)
        seen = Seen()
        for piece in partition.share.pieces:
            for block in walk(piece, seen, options.verify, may_deliver if only else None):
                fold.add(block)
        fold.note_read(seen)
        yield fact_batch(
            fold.tally.series, fold.tally.rows(), arrow_schema(FACT_COLUMNS, self._names)
        )


def known_columns(schema: StructType, columns: dict[str, str]) -> list[str]:
    """The names of a schema; raises `OptionInvalid` for a column that there is not, or not so."""
    names = []
    for field in schema.fields:
        told = field.dataType.simpleString()
        if columns.get(field.name) != told:
            known = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            raise OptionInvalid(f"there is no column {field.name} {told}; there are {known}")
        names.append(field.name)
    return names
