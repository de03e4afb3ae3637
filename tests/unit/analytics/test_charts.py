"""How charts tell durations, and which steps a heat map has."""

import pytest

from analytics.jobs.charts import _doublings, _span, spoken


@pytest.mark.parametrize(
    ("value_ms", "said"),
    [(0, "0 ms"), (850, "850 ms"), (1_500, "1.5 s"), (1_200_000, "20 min"), (10_800_000, "3 h")],
)
def test_durations_are_said_as_people_say_them(value_ms: int, said: str) -> None:
    assert spoken(value_ms) == said


def test_a_heat_map_leaves_no_step_out() -> None:
    cells = [{"from_ms": -1, "to_ms": -1}, {"from_ms": 1, "to_ms": 1}, {"from_ms": 8, "to_ms": 15}]
    assert _doublings(cells) == [(-1, -1), (0, 0), (1, 1), (2, 3), (4, 7), (8, 15)]
    assert _doublings(cells[2:]) == [(8, 15)]
    assert _doublings([{"from_ms": 0, "to_ms": 0}]) == [(0, 0)]
    assert [_span(*one) for one in ((-1, -1), (0, 0), (1024, 2047))] == ["early", "0 ms", "1 s +"]
