"""The streaming reader of ``commitlog``: every record once, in log order, batch by batch.

An offset is ``{"next": log offset}``. Of our store a batch ends at ``flushed`` at the latest; of a
broker's, at its last whole record. A batch that is replayed after a failure reads the same bytes:
should retention have removed them meanwhile, the query fails and says so instead of returning less.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from analytics.datasource.options import Options
from analytics.datasource.planning import Share, shares_of
from analytics.datasource.reading import read_share
from analytics.log.extent import Extent, find_extent, pieces_of
from analytics.log.walk import Seen, walk


class StreamPartition(InputPartition):
    """A share, as Spark hands it to a worker."""

    def __init__(self, share: Share) -> None:
        self.share = share


class CommitLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows a log."""

    def __init__(self, options: Options, names: Sequence[str]) -> None:
        self._options, self._names = options, names
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        start = self._options.start
        return {"next": find_extent(self._options.path).start if start is None else start}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        limit = self._options.max_bytes
        return ReadAllAvailable() if limit is None else ReadMaxBytes(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        extent = find_extent(self._options.path)
        self._target = readable_end(extent, extent.start)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        extent = find_extent(self._options.path)
        first = start["next"]
        end = readable_end(extent, first) if self._target is None else self._target
        if isinstance(limit, ReadMaxBytes) and end - first > limit.max_bytes:
            end = record_before(extent, first, first + limit.max_bytes)
        return {"next": max(first, end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        extent = find_extent(self._options.path)
        pieces = pieces_of(extent, start["next"], end["next"], count=self._options.partitions)
        return [StreamPartition(one) for one in shares_of(pieces, self._options.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, StreamPartition)  # noqa: S101 (Spark gives back what it got)
        return read_share(partition.share, self._options, self._names, {})

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is kept here; the checkpoint of the query says how far it is."""

    def stop(self) -> None:
        """Nothing is held."""


def readable_end(extent: Extent, start: int) -> int:
    """Where the whole records end that begin at `start` or later."""
    if extent.ours or start >= extent.end:
        return max(extent.end, start)
    seen = Seen(end=start)
    # From the last segment's beginning: what lies before it is whole or damaged, but written.
    first = max(start, extent.segments[-1].base)
    for piece in pieces_of(extent, first, extent.end):
        for _ in walk(piece, seen, "structure"):
            pass
    return max(seen.end, first)


def record_before(extent: Extent, start: int, stop: int) -> int:
    """Where the last record ends that ends by `stop`; the first record's end at least."""
    seen, is_first = Seen(end=start), True
    for piece in pieces_of(extent, start, extent.end):
        for block in walk(piece, seen, "structure"):
            ends = block.base + block.ends
            fitting = int((ends <= stop).sum())
            if fitting < len(ends):
                if fitting or is_first:
                    return int(ends[max(0, fitting - 1)])
                return block.base + int(block.ats[0])
            is_first = False
    return max(seen.end, start)
