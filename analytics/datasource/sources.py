"""The data source ``commitlog``, as Spark knows it.

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

from analytics.datasource.arrow import ddl
from analytics.datasource.options import OptionInvalid, Options
from analytics.datasource.planning import Share, plan
from analytics.datasource.reading import Conditions, read_share
from analytics.datasource.streaming import CommitLogStreamReader
from analytics.log.table import COLUMNS

#: Columns on which a query's conditions can be taken.
_CONDITIONAL = ("topic", "event")


def register(spark: SparkSession) -> None:
    """Make the source known to a session."""
    spark.dataSource.register(CommitLogSource)


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
        return kind(options, known_columns(schema))

    def streamReader(self, schema: StructType) -> CommitLogStreamReader:  # noqa: N802 (Spark's name)
        return CommitLogStreamReader(Options.read(self.options), known_columns(schema))


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


def known_columns(schema: StructType) -> list[str]:
    """The names of a schema; raises `OptionInvalid` for a column that there is not, or not so."""
    names = []
    for field in schema.fields:
        told = field.dataType.simpleString()
        if COLUMNS.get(field.name) != told:
            known = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
            raise OptionInvalid(f"there is no column {field.name} {told}; there are {known}")
        names.append(field.name)
    return names
