"""Placement: levels leads, the wheel follows it, housekeeping goes where nothing is handed over."""

import itertools

from scheduler.placement import is_better_placed, is_well_placed


def test_every_place_is_good_while_nobody_leads() -> None:
    assert is_well_placed("housekeeping", "a", {})
    assert is_well_placed("wheel", "a", {"housekeeping": "b"})


def test_the_wheel_goes_where_levels_is() -> None:
    assert is_better_placed("wheel", "a", "b", {"levels": "a", "wheel": "b"})
    assert not is_better_placed("wheel", "b", "a", {"levels": "a", "wheel": "a"})


def test_housekeeping_leaves_the_process_that_hands_over() -> None:
    holders = {"levels": "a", "wheel": "a", "housekeeping": "a"}
    assert is_better_placed("housekeeping", "b", "a", holders)


def test_a_second_group_of_levels_goes_to_another_process() -> None:
    holders = {"levels": "a", "wheel": "a", "levels-2": "a"}
    assert is_better_placed("levels-2", "b", "a", holders)


def test_any_start_of_two_processes_settles_and_stays() -> None:
    for start in itertools.product("ab", repeat=3):
        holders = dict(zip(("levels", "wheel", "housekeeping"), start, strict=True))
        for _ in range(6):
            _settle(holders)
        settled = dict(holders)
        _settle(holders)
        assert holders == settled
        assert holders["levels"] == holders["wheel"] != holders["housekeeping"]


def _settle(holders: dict[str, str]) -> None:
    for group, holder in list(holders.items()):
        standby = "b" if holder == "a" else "a"
        if is_better_placed(group, standby, holder, holders):
            holders[group] = standby
