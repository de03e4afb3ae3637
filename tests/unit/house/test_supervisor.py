"""The supervisor's judgements: whether to begin, when to start again, and what stands still."""

import socket

import pytest

from postdate.config import Config
from postdate.supervisor.__main__ import refusal_to_listen
from postdate.supervisor.backoff import LIVED_MS_ENOUGH, WAIT_MS_MAX, Backoff
from postdate.supervisor.stalls import LOOK_MS_MAX, STALL_MS_MAX, StallWatch


def looks(watch: StallWatch, held: dict[str, tuple[int, int]], count: int) -> dict[str, int]:
    stalled: dict[str, int] = {}
    for _ in range(count):
        stalled = watch.observe(held, 500)
    return stalled


def test_the_first_death_is_answered_at_once() -> None:
    assert Backoff().died(lived_ms=10) == 0


def test_repeated_deaths_wait_twice_as_long_each_time_up_to_a_bound() -> None:
    backoff = Backoff()
    waits_ms = [backoff.died(lived_ms=10) for _ in range(9)]
    assert waits_ms[:4] == [0, 250, 500, 1000]
    assert waits_ms[-1] == WAIT_MS_MAX


def test_a_long_life_forgives_earlier_deaths() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.died(lived_ms=10)
    assert backoff.died(lived_ms=LIVED_MS_ENOUGH) == 0


def test_a_holder_that_stands_still_for_five_seconds_is_named() -> None:
    watch = StallWatch()
    held = {"append": (42, 7)}
    assert looks(watch, held, 1 + STALL_MS_MAX // 500 - 1) == {}
    assert watch.observe(held, 500) == {"append": 42}


def test_a_holder_that_counts_is_never_named() -> None:
    watch = StallWatch()
    for counter in range(100):
        assert watch.observe({"append": (42, counter)}, 500) == {}


def test_a_lock_that_nobody_holds_never_stalls() -> None:
    assert looks(StallWatch(), {"append": (0, 7)}, 100) == {}


def test_a_new_holder_begins_with_a_clean_slate() -> None:
    watch = StallWatch()
    looks(watch, {"append": (42, 7)}, 9)
    assert looks(watch, {"append": (43, 7)}, 9) == {}


def test_time_in_which_the_supervisor_did_not_run_is_not_held_against_a_holder() -> None:
    watch = StallWatch()
    watch.observe({"append": (42, 7)}, 500)
    assert watch.observe({"append": (42, 7)}, 3_600_000) == {}
    assert LOOK_MS_MAX < STALL_MS_MAX


def test_a_port_that_another_server_has_is_in_use() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        config = Config(host="127.0.0.1", port=other.getsockname()[1])
        assert "is in use" in str(refusal_to_listen(config))
    assert refusal_to_listen(config) is None


@pytest.mark.parametrize("host", ["192.0.2.1", "not a host", "a..b"])
def test_an_address_that_is_not_this_machines_is_not_said_to_be_in_use(host: str) -> None:
    refusal = str(refusal_to_listen(Config(host=host, port=8000)))
    assert "in use" not in refusal
    assert "POSTDATE_HOST" in refusal
