"""The options of ``commitlog`` and of `facts_of`, read and checked.

=============  ==================================================================================
option         meaning
=============  ==================================================================================
path           the store's root directory: the one that holds ``commitlog``
from, to       only records stored in [from, to): ms since the epoch, or ISO 8601 with a zone
topics         only records of these topics (those that consumers know), with commas between
start, end     only the log's bytes in [start, end); a record must begin at `start`
verify         ``crc`` (default): every record's CRC is computed; ``structure``: a third faster,
               but flipped bits inside a record are not noticed
damaged        ``rows`` (default): a stretch that cannot be read is a row of event ``damaged``;
               ``skip``: it is left out
partitions     how many there shall be; by default twice the processors
facts          of `facts_of`: ``all`` (default), or ``delivered``: only these are counted, and
               records that they do not need are checked by their structure alone
precision_ms   width of a broker's timer slots (1000)
max_bytes      of a stream: the log's bytes in a batch, at most
pushdown       ``true``: conditions on `topic` and `event` are taken from the query; needs the
               setting ``spark.sql.python.filterPushdown.enabled``
=============  ==================================================================================
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from analytics.log.walk import Verify


class OptionInvalid(ValueError):
    """An option of the data source that cannot be used."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a query asks of a log."""

    path: Path
    from_ms: int | None
    to_ms: int | None
    topics: frozenset[str] | None
    start: int | None
    end: int | None
    verify: Verify
    damaged_rows: bool
    partitions: int
    precision_ms: int
    max_bytes: int | None
    pushdown: bool
    deliveries_only: bool

    @classmethod
    def read(cls, given: Mapping[str, str]) -> "Options":
        """Check the options as Spark hands them on; raises `OptionInvalid`."""
        options = {name.lower(): value for name, value in given.items()}
        if "path" not in options:
            raise OptionInvalid("name the store's root directory: .load(path)")
        topics = [one.strip() for one in options.get("topics", "").split(",") if one.strip()]
        return cls(
            path=Path(options["path"]),
            from_ms=_moment(options, "from"),
            to_ms=_moment(options, "to"),
            topics=frozenset(topics) or None,
            start=_number(options, "start"),
            end=_number(options, "end"),
            verify="structure" if _one_of(options, "verify", "crc", "structure") else "crc",
            damaged_rows=not _one_of(options, "damaged", "rows", "skip"),
            partitions=_number(options, "partitions") or 2 * (os.cpu_count() or 1),
            precision_ms=_number(options, "precision_ms") or 1000,
            max_bytes=_number(options, "max_bytes"),
            pushdown=bool(_one_of(options, "pushdown", "false", "true")),
            deliveries_only=_one_of(options, "facts", "all", "delivered"),
        )


def _one_of(options: Mapping[str, str], name: str, usual: str, other: str) -> bool:
    """Whether the option has its other value."""
    value = options.get(name, usual).lower()
    if value not in (usual, other):
        raise OptionInvalid(f"{name} is {usual} or {other}, not {value}")
    return value == other


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise OptionInvalid(f"{name} is a whole number, not {text!r}")
    return int(text)


def _moment(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise OptionInvalid(f"{name} is no moment: {text!r}") from error
    if moment.tzinfo is None:
        raise OptionInvalid(f"{name} needs a zone: {text!r}")
    return round(moment.timestamp() * 1000)
