"""Some seeded worlds in every run of the suite; `make simulate` plays thousands, in CI too."""

import logging
from collections.abc import Iterator

import pytest

from queues.store.append import Appender
from queues.store.changes import Changes
from queues.store.flushing import Flusher
from queues.store.messages import Decision
from tests.simulation.world import ENGINES, World, play

SEEDS = range(32)
CHUNK = 8


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What the store says of crashes is not of interest here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", range(SEEDS.start, SEEDS.stop, CHUNK))
def test_no_seed_breaks_a_promise(first: int) -> None:
    for seed in range(first, first + CHUNK):
        try:
            play(seed, steps=60)
        except Exception as error:
            error.add_note(f"again: make simulate SEED={seed} ARGS='--steps 60'")
            raise


@pytest.mark.parametrize("engine", ENGINES)
def test_a_seed_plays_the_same_world_again(engine: str) -> None:
    first, second = (play(7, steps=60, engine=engine) for _ in range(2))
    assert told(first) == told(second)


def told(world: World) -> object:
    """Everything that happened to every message, and every answer."""
    moments = {one: told.moments for one, told in world.history.messages.items()}
    return moments, [(asked.what, asked.ids, asked.start, asked.end) for asked in world.asked]


def is_noticed() -> bool:
    """Whether one of a few worlds finds fault."""
    for seed in range(40):
        try:
            play(seed, steps=60)
        except Exception:  # noqa: BLE001 (whatever breaks, it was noticed)
            return True
    return False


def test_worlds_notice_decisions_without_a_look_at_the_settled_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Appender, "_decided", lambda _self, sealed, _gate: (sealed, (), ()))
    assert is_noticed()


def test_worlds_notice_a_cancel_that_is_not_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Changes, "cancel", lambda *_, **__: Decision("cancelled"))
    assert is_noticed()


def test_worlds_notice_a_write_that_is_not_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Appender, "repair", lambda _self: None)
    assert is_noticed()


def test_worlds_notice_answers_before_the_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flusher, "_sync", lambda *_: None)
    assert is_noticed()
