"""The bytes of traces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queues.store.traces import ROW, Traced, TraceUnreadable, decode_trace, encode_trace

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=127)
messages = st.builds(
    Traced,
    topic=names,
    due_ms=st.integers(0, 2**52),
    delivered_ms=st.integers(0, 2**52),
    kind=st.sampled_from("ILT"),
    level=st.integers(0, 255),
    attempt=st.integers(1, 65_535),
)


@given(st.sampled_from(["received", "acked"]), names, st.lists(messages, min_size=1, max_size=50))
def test_a_trace_is_read_back_as_it_was_written(event: str, group: str, told: list[Traced]) -> None:
    trace = decode_trace(encode_trace(event, group, told))  # type: ignore[arg-type]
    assert (trace.event, trace.group) == (event, group)
    assert [
        Traced(
            trace.topics[row["topic"]], row["due_ms"], row["delivered_ms"], chr(row["kind"]),
            row["level"], row["attempt"],
        )
        for row in trace.rows
    ] == told  # fmt: skip


def test_the_example_has_the_bytes_that_the_module_tells() -> None:
    told = [Traced("orders", 1, 2, "T", 0, 1)] * 3
    assert len(encode_trace("received", "billing", told)) == 94
    assert ROW.itemsize == 24


@given(st.binary(max_size=60))
def test_rubbish_is_no_trace(body: bytes) -> None:
    with pytest.raises(TraceUnreadable):
        decode_trace(body)


@given(st.integers(1, 93))
def test_half_a_trace_is_none(kept: int) -> None:
    whole = encode_trace("received", "billing", [Traced("orders", 1, 2, "T", 0, 1)] * 3)
    cut = whole[:kept]
    # Cut between messages it is a shorter trace; anywhere else it is none.
    if kept >= 22 and (kept - 22) % 24 == 0:
        assert len(decode_trace(cut).rows) == (kept - 22) // 24
        return
    with pytest.raises(TraceUnreadable):
        decode_trace(cut)
