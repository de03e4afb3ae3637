"""The due load counts what a plain look counts, whichever way it takes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queues.selectors import dueload
from queues.selectors.dueload import Span
from queues.store.outlook import NEVER_MS, Dues

spans = st.builds(
    Span, step_ms=st.integers(1, 40), count=st.integers(1, 30), before=st.integers(0, 3)
)
blocks = st.lists(st.lists(st.integers(0, 600), min_size=1, max_size=30), min_size=1, max_size=4)


@given(blocks, st.lists(spans, min_size=1, max_size=3), st.integers(0, 500), st.data())
def test_every_span_counts_what_is_due_in_it(blocks, spans, now_ms, data):
    looks = []
    for block in blocks:
        lost = data.draw(st.integers(0, 3))
        knows = data.draw(st.booleans())
        zone = (min(block), max(block)) if knows else (-1, NEVER_MS)
        due_ms = np.array([*block, *[NEVER_MS] * lost], np.int64)
        looks.append(Dues(due_ms, len(block), *zone))
    found = dueload.count_dues(looks, spans, now_ms, now_ms)
    every = [due for block in blocks for due in block]
    assert (found.waiting, found.next_due_ms) == (len(every), min(every))
    assert found.overdue == sum(due <= now_ms for due in every)
    for span, counted in zip(spans, found.spans, strict=True):
        start_ms = now_ms // span.step_ms * span.step_ms - span.before * span.step_ms
        assert counted.start_ms == start_ms
        steps = [(due - start_ms) // span.step_ms for due in every]
        assert counted.counts == tuple(steps.count(number) for number in range(span.count))
