"""The bytes of traces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.store.traces import (
    ROW,
    TraceUnreadable,
    decode_trace,
    encode_trace,
    pack_row,
)

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=127)
rows = st.builds(
    pack_row,
    due_ms=st.integers(0, 2**52),
    delivered_ms=st.integers(0, 2**52),
    kind=st.sampled_from(b"ILT"),
    level=st.integers(0, 255),
    attempt=st.integers(1, 65_535),
)
ONE = pack_row(due_ms=1, delivered_ms=2, kind=ord("T"), level=0, attempt=1)


@given(
    st.sampled_from(["received", "acked"]),
    names,
    st.dictionaries(names, st.lists(rows, min_size=1, max_size=20), min_size=1, max_size=4),
)
def test_a_trace_is_read_back_as_it_was_written(
    event: str, group: str, told: dict[str, list[bytes]]
) -> None:
    body = encode_trace(event, group, told)  # type: ignore[arg-type]
    joined = {topic: [b"".join(some)] for topic, some in told.items()}
    assert body == encode_trace(event, group, joined)  # type: ignore[arg-type]
    trace = decode_trace(body)
    assert (trace.event, trace.group) == (event, group)
    found: dict[str, list[bytes]] = {}
    for row in trace.rows:
        blank = row.copy()
        blank["topic"] = 0
        found.setdefault(trace.topics[row["topic"]], []).append(blank.tobytes())
    assert found == told


def test_the_example_has_the_bytes_that_the_module_tells() -> None:
    assert len(encode_trace("received", "billing", {"orders": [ONE] * 3})) == 94
    assert ROW.itemsize == 24


@given(st.binary(max_size=60))
def test_rubbish_is_no_trace(body: bytes) -> None:
    with pytest.raises(TraceUnreadable):
        decode_trace(body)


@given(st.integers(1, 93))
def test_half_a_trace_is_none(kept: int) -> None:
    whole = encode_trace("received", "billing", {"orders": [ONE] * 3})
    cut = whole[:kept]
    # Cut between messages it is a shorter trace; anywhere else it is none.
    if kept >= 22 and (kept - 22) % 24 == 0:
        assert len(decode_trace(cut).rows) == (kept - 22) // 24
        return
    with pytest.raises(TraceUnreadable):
        decode_trace(cut)
