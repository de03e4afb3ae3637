"""Placement: levels leads, everything else goes where nothing is handed over, if it can."""

import itertools
from collections.abc import Iterable

from scheduler.placement import is_better_placed, is_well_placed, may_rotate


def test_every_place_is_good_while_nobody_leads() -> None:
    assert is_well_placed("housekeeping", "a", {})
    assert is_well_placed("wheel", "a", {"housekeeping": "b"})


def test_the_wheel_leaves_the_process_of_levels() -> None:
    assert is_better_placed("wheel", "b", "a", {"levels": "a", "wheel": "a"})
    assert not is_better_placed("wheel", "a", "b", {"levels": "a", "wheel": "b"})


def test_a_term_that_is_over_ends_only_for_a_process_that_hands_nothing_over() -> None:
    holders = {"levels": "a", "wheel": "b", "housekeeping": "b"}
    assert not may_rotate("levels", "b", holders)
    assert may_rotate("levels", "c", holders)


def test_housekeeping_leaves_the_process_that_hands_over() -> None:
    holders = {"levels": "a", "wheel": "a", "housekeeping": "a"}
    assert is_better_placed("housekeeping", "b", "a", holders)


def test_a_second_group_of_levels_goes_to_another_process() -> None:
    holders = {"levels": "a", "wheel": "a", "levels-2": "a"}
    assert is_better_placed("levels-2", "b", "a", holders)


def test_any_start_of_two_processes_settles_and_stays() -> None:
    for start in itertools.product("ab", repeat=3):
        holders = _settled(start, "ab")
        assert holders["levels"] != holders["wheel"]


def test_of_three_processes_each_comes_to_hold_one_loop() -> None:
    for start in itertools.product("abc", repeat=3):
        assert len(set(_settled(start, "abc").values())) == 3


def _settled(start: Iterable[str], processes: str) -> dict[str, str]:
    holders = dict(zip(("levels", "wheel", "housekeeping"), start, strict=True))
    for _ in range(6):
        _settle(holders, processes)
    settled = dict(holders)
    _settle(holders, processes)
    assert holders == settled
    return holders


def _settle(holders: dict[str, str], processes: str) -> None:
    for group, holder in list(holders.items()):
        for standby in processes:
            if is_better_placed(group, standby, holder, holders):
                holders[group] = standby
                break
