"""The facts of ranges of a log, computed by Spark for the partials' keeper."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everyone writes it)

from analytics.datasource import facts_of
from analytics.datasource.arrow import FACT_COLUMNS, ddl
from analytics.log.extent import SegmentRemoved, find_extent
from analytics.transforms import FACTS, summed
from queues.store.disk import Disk

_REMOVED = "was removed before it was read"


@dataclass(slots=True)
class FoldedFacts:
    """What one range holds."""

    table: pa.Table
    records: int
    damaged: int
    damages: list[tuple[int, str]]
    last_offset: int
    last_size: int
    last_store_ms: int
    first_store_ms: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.table.num_rows)

    def write(self, path: Path) -> None:
        """Write them as Parquet; the file is whole and on the device when this returns."""
        write_parquet(self.table, path)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a file and put it on the device."""
    temporary = path.with_name(f"{path.name}.new")
    pq.write_table(table, temporary, compression="zstd")
    disk = Disk()
    file = disk.open(temporary)
    try:
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_directory(path.parent)


@dataclass(frozen=True, slots=True)
class Folder:
    """Folds ranges of one log, and merges what was folded."""

    spark: SparkSession
    root: Path
    #: Further options of `facts_of`.
    options: dict[str, str]

    def fold(self, start: int, end: int) -> FoldedFacts:
        """The facts of a range; raises `SegmentRemoved` when retention was faster."""
        try:
            told = {**self.options, "start": str(start), "end": str(end)}
            table = summed(facts_of(self.spark, self.root, **told)).toArrow()
        except Exception as error:
            if _REMOVED in str(error) or find_extent(self.root).start > start:
                raise SegmentRemoved(start) from error
            raise
        return told_of(table)

    def merge(self, files: list[Path], target: Path) -> int:
        """Sum the facts of files up into one; returns its rows."""
        table = summed(self.read(files)).toArrow().sort_by([("quarter_ms", "ascending")])
        write_parquet(table, target)
        return int(table.num_rows)

    def read(self, files: list[Path]) -> DataFrame:
        """The facts that lie in files."""
        # With the schema, Spark has no need of a job that looks for it.
        return self.spark.read.schema(ddl(FACT_COLUMNS)).parquet(*[str(one) for one in files])


def told_of(table: pa.Table) -> FoldedFacts:
    """Facts as they came from the workers: what was read is taken from among them."""
    is_read = pc.equal(table["fact"], "read")
    told: list[dict[str, Any]] = [
        json.loads(one.as_py()) for one in table.filter(is_read)["reason"] if one.as_py()
    ]
    told = [one for one in told if one["records"] or one["damaged"]]
    facts = table.filter(pc.invert(is_read)).sort_by(
        [("quarter_ms", "ascending"), ("fact", "ascending"), ("bucket", "ascending")]
    )
    with_records = [one for one in told if one["records"]]
    last = max(with_records, key=lambda one: one["last_offset"], default=None)
    first = min(with_records, key=lambda one: one["last_offset"], default=None)
    return FoldedFacts(
        facts,
        records=sum(one["records"] for one in told),
        damaged=sum(one["damaged"] for one in told),
        damages=sorted((int(at), str(why)) for one in told for at, why in one["damages"])[:20],
        last_offset=last["last_offset"] if last else -1,
        last_size=last["last_size"] if last else 0,
        last_store_ms=last["last_store_ms"] if last else 0,
        first_store_ms=first["first_store_ms"] if first else 0,
    )


def not_read(facts: DataFrame) -> DataFrame:
    """Facts straight from a log, without what the workers told of themselves."""
    return facts.filter(F.col("fact") != "read").select(*FACTS)
