"""Drawings: figures become the coordinates of an SVG; templates only write them down.

Nothing here knows what is drawn. A drawing has a width of 1000 units, whatever the page's width.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 1000.0
#: A value so many times the mean of all dwarfs the others.
_SPIKE = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram."""

    x: float
    y: float
    width: float
    height: float
    #: Left edge and width of the whole column, which answers to the pointer.
    zone_x: float
    zone_width: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A line of the grid with its label."""

    at: float
    label: str


def nice_maximum(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, … at or above."""
    if value <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def is_spiky(values: Sequence[float]) -> bool:
    """Whether one value dwarfs the others so that on an even scale they could not be told apart."""
    some = [value for value in values if value > 0]
    return bool(some) and max(some) > _SPIKE * sum(some) / len(some)


def share_of(value: float, top: float, *, root: bool) -> float:
    """How high a value stands, 0 to 1; by its square root where one value dwarfs the others."""
    share = min(value, top) / top
    return math.sqrt(share) if root else share


def bars(values: Sequence[float], *, height: float, top: float, root: bool = False) -> list[Bar]:
    """One bar a value, from the left; what is not zero is seen."""
    column = WIDTH / max(1, len(values))
    gap = min(3.0, column * 0.25)
    made = []
    for index, value in enumerate(values):
        tall = max(2.0, height * share_of(value, top, root=root)) if value else 0.0
        made.append(
            Bar(
                x=round(index * column + gap / 2, 2),
                y=round(height - tall, 2),
                width=round(column - gap, 2),
                height=round(tall, 2),
                zone_x=round(index * column, 2),
                zone_width=round(column, 2),
            )
        )
    return made


def grid(top: float, *, height: float, lines: int = 2, root: bool = False) -> list[Mark]:
    """Horizontal lines at even heights, the top included, with what they stand for."""
    power = 2 if root else 1
    return [
        Mark(round(height - height * part / lines, 2), short_number(top * (part / lines) ** power))
        for part in range(1, lines + 1)
    ]


def curve(
    points: Sequence[tuple[float, float]], *, height: float, top: float, root: bool = False
) -> str:
    """The points, as shares of the width and values, as SVG coordinates."""
    return " ".join(
        f"{share * WIDTH:.1f},{height - height * share_of(value, top, root=root):.1f}"
        for share, value in points
    )


def short_number(value: float) -> str:
    """A number that fits an axis: 950, 12k, 3.4M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def sector(center: float, inner: float, outer: float, begin: float, end: float) -> str:
    """The path of a ring's sector; angles in turns, clockwise from the top."""

    def point(radius: float, turn: float) -> str:
        angle = turn * 2 * math.pi
        return f"{center + radius * math.sin(angle):.2f} {center - radius * math.cos(angle):.2f}"

    return (
        f"M{point(outer, begin)}A{outer:g} {outer:g} 0 0 1 {point(outer, end)}"
        f"L{point(inner, end)}A{inner:g} {inner:g} 0 0 0 {point(inner, begin)}Z"
    )


def spoke(center: float, radius: float, turn: float) -> tuple[float, float]:
    """A point on a circle; the angle in turns, clockwise from the top."""
    angle = turn * 2 * math.pi
    return (
        round(center + radius * math.sin(angle), 2),
        round(center - radius * math.cos(angle), 2),
    )


def shade(value: int, top: int) -> str:
    """A load's class, `l0` to `l4`, by the root of its share of the top; what is not 0 is seen."""
    return f"l{max(1, math.ceil(4 * math.sqrt(value / top)))}" if value and top else "l0"
