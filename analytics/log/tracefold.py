"""Folding traces: how long after its due time a message was received, and acknowledged."""

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from analytics.log.facts import KINDS, QUARTER_MS, Series, Tally
from analytics.log.walk import Block, Int64s
from queues.store.traces import Trace, TraceUnreadable, decode_trace

#: A first attempt, and any later one.
FIRST, LATER = 1, 2
_KIND_LETTERS = {ord(letter): word for letter, word in KINDS.items()}
_LEVELS = 256


class _Part:
    """The rows of traces of one event, group and quarter-hour."""

    def __init__(self) -> None:
        self.rows: list[npt.NDArray[np.void]] = []
        self.at_ms: list[int] = []
        self.topics: list[Int64s] = []


def fold_traces(block: Block, tally: Tally) -> None:
    """Count what journal records say that are traces."""
    names: dict[str, int] = {}
    parts: dict[tuple[str, str, int], _Part] = defaultdict(_Part)
    bodies = zip(
        (block.ats + 88).tolist(), block.topic_at.tolist(), block.heads["store_ms"].tolist(),
        strict=True,
    )  # fmt: skip
    for start, end, store_ms in bodies:
        trace = _trace_of(block.memory.view[start:end].tobytes())
        if trace is None:
            continue
        part = parts[trace.event, trace.group, store_ms // QUARTER_MS]
        part.rows.append(trace.rows)
        part.at_ms.append(store_ms)
        part.topics.append(_numbers(trace, names))
    texts = list(names)
    for (event, group, quarter), part in parts.items():
        _fold_part(Series(event, quarter * QUARTER_MS, group=group), part, texts, tally)


def _trace_of(body: bytes) -> Trace | None:
    try:
        return decode_trace(body)
    except TraceUnreadable:
        return None  # A journal record of another kind, or of a later version.


def _numbers(trace: Trace, names: dict[str, int]) -> Int64s:
    """The topics of a trace's rows by their numbers in `names`."""
    numbers = [names.setdefault(topic, len(names)) for topic in trace.topics]
    found: Int64s = np.array(numbers or [0], np.int64)[trace.rows["topic"]]
    return found


def _fold_part(part_of: Series, part: _Part, texts: list[str], tally: Tally) -> None:
    rows = np.concatenate(part.rows)
    at_ms = np.repeat(part.at_ms, [len(one) for one in part.rows])
    topics = np.concatenate(part.topics)
    kinds = rows["kind"].astype(np.int64)
    immediate = kinds == ord("I")
    # An immediate message was due when it was stored: what came before is the sender's affair.
    waited_ms = at_ms - np.where(immediate, rows["delivered_ms"], rows["due_ms"])
    later = (rows["attempt"] > 1).astype(np.int64)
    groups = ((topics * 2 + later) * 256 + kinds) * _LEVELS + rows["level"]

    def series_of(number: int) -> int:
        number, level = divmod(number, _LEVELS)
        number, kind = divmod(number, 256)
        topic, is_later = divmod(number, 2)
        return tally.number(
            part_of._replace(
                topic=texts[topic],
                kind=_KIND_LETTERS.get(kind, ""),
                level=level,
                attempt=LATER if is_later else FIRST,
            )
        )

    tally.add(groups, waited_ms.astype(np.int64), series_of)
