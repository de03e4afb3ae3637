"""Drawings: what is drawn stands as high as its scale says."""

import pytest

from postdate.console.drawing import bars, curve, grid, is_spiky


@pytest.mark.parametrize(
    ("values", "spiky"),
    [([], False), ([0, 0], False), ([5], False), ([1, 2, 3] * 5, False), ([1] * 20 + [90], True)],
)
def test_a_value_that_dwarfs_the_others_is_seen(values, spiky):
    assert is_spiky(values) is spiky


def test_on_a_square_root_scale_half_the_height_is_a_quarter():
    assert [(mark.at, mark.label) for mark in grid(20_000, height=100, root=True)] == [
        (50.0, "5k"), (0.0, "20k"),
    ]  # fmt: skip
    assert [bar.height for bar in bars([5_000, 20_000], height=100, top=20_000, root=True)] == [
        50.0, 100.0,
    ]  # fmt: skip
    assert curve([(0.5, 5_000)], height=100, top=20_000, root=True) == "500.0,50.0"


def test_on_an_even_scale_half_the_height_is_half():
    assert [mark.label for mark in grid(20_000, height=100)] == ["10k", "20k"]
    assert bars([10_000], height=100, top=20_000)[0].height == 50.0
