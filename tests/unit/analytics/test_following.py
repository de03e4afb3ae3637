"""Following records by their sizes, in lanes side by side, as following them one by one does."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from analytics.log import following
from analytics.log.following import follow, look
from analytics.log.walk import HEAD as HEADS
from analytics.log.walk import Int64s, Memory
from queues.store.record import MAGIC_V1
from tests.support.folding import counts, fold
from tests.support.loglines import LivedStore

BASE = 1 << 20
BLANK = 4096


@pytest.fixture(autouse=True)
def narrow_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LANE_BYTES", 4096)


def segment(sizes: Sequence[int]) -> tuple[bytearray, list[int]]:
    """Records of these sizes, and where they begin."""
    places = [sum(sizes[:number]) for number in range(len(sizes))]
    content = bytearray(random.Random(1).randbytes(sum(sizes)) + bytes(BLANK))
    for at, size in zip(places, sizes, strict=True):
        content[at : at + 8] = size.to_bytes(4, "big") + MAGIC_V1.to_bytes(4, "big")
        content[at + 28 : at + 36] = (BASE + at).to_bytes(8, "big")
    return content, places


def followed(content: bytes, start: int, stop: int) -> list[int]:
    memory = Memory(content)
    heads = memory.numbers(HEADS)
    places: Int64s = follow(memory.octets, heads, start, stop, BASE)
    looks = look(places, heads[places], BASE) & (places + heads["size"][places] <= len(content))
    return places[: len(places) if looks.all() else int(np.argmin(looks))].tolist()


@pytest.mark.parametrize("sizes", [(400,), (91, 5_000, 140), (20_000, 300), (91,)])
def test_lanes_find_what_single_steps_find(sizes: tuple[int, ...]) -> None:
    chance = random.Random(7)
    content, places = segment([chance.choice(sizes) + chance.randrange(9) for _ in range(2_000)])
    assert followed(content, 0, len(content) - BLANK) == places
    assert followed(content, places[700], places[1900]) == places[700:1900]


@pytest.mark.parametrize("field", [0, 5, 30])
def test_what_follows_a_broken_head_is_not_given(field: int) -> None:
    content, places = segment([400] * 2_000)
    broken = places[1_234]
    content[broken + field : broken + field + 3] = b"\xff\xfe\xfd"
    assert followed(content, 0, len(content) - BLANK) == places[:1_234]


def test_a_record_inside_a_body_is_none_of_the_chain() -> None:
    content, places = segment([3_000] * 500)
    inside = places[100] + 1_000
    content[inside : inside + 8] = (500).to_bytes(4, "big") + MAGIC_V1.to_bytes(4, "big")
    content[inside + 28 : inside + 36] = (BASE + inside).to_bytes(8, "big")
    found: list[int] = []
    while len(found) < len(places):
        found += followed(content, places[len(found)], len(content) - BLANK)
    assert found == places


def test_nothing_is_followed_from_what_is_no_record() -> None:
    assert followed(bytes(1 << 20), 0, 1 << 20) == []
    assert followed(bytes(50), 0, 50) == []


def test_damage_in_lanes_is_counted_and_stepped_over(lived: LivedStore) -> None:
    for _ in range(900):
        lived.send("orders", level=1)
    lived.flush()
    path = Path(lived.store.root / "commitlog" / f"{0:020d}")
    size = lived.store.flushed // 900
    with path.open("r+b") as file:
        for number, field in ((200, 0), (333, 5), (500, 30), (777, 120), (899, 0)):
            file.seek(number * size + field)
            file.write(b"\xff\xff\xff")
    facts, seen = fold(lived.store.root)
    assert counts(facts) == {"sent": 895}
    assert [at // size for at, _ in seen.damages] == [200, 333, 500, 777]
