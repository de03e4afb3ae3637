"""Placement: which process should hold which loop, when there are several.

The process that hands over should compute nothing else (DESIGN section 5), not even another
hand-over: two loops in one interpreter wait for each other's lock in the middle of each write.
So `levels` leads, and every other group goes to a process that hands nothing over, if there is
one. A placement is a wish: a free lease that nobody better takes within two ticks is taken, and a
lost one at once.

Example: A holds levels and wheel, B holds housekeeping. A gives wheel to its standby B; neither
is a good place for housekeeping then, so it stays. Of three processes, each would hold one.
"""

from collections.abc import Iterable, Mapping

#: The loop that all others are placed by.
LEADER = "levels"


def is_well_placed(group: str, process: str, holders: Mapping[str, str]) -> bool:
    """Whether `process` is a good place for `group`; `holders` names who holds the other loops."""
    leader = holders.get(LEADER)
    if group == LEADER or leader is None:
        return True
    return not _hands_over(process, holders, but=group)


def is_better_placed(group: str, standby: str, holder: str, holders: Mapping[str, str]) -> bool:
    """Whether `group` should move from its holder's process to its standby's."""
    return is_well_placed(group, standby, holders) and not is_well_placed(group, holder, holders)


def may_rotate(group: str, standby: str, holders: Mapping[str, str]) -> bool:
    """Whether `group` may move to its standby's process only because its term is over."""
    return not _hands_over(standby, holders, but=group)


def _hands_over(process: str, holders: Mapping[str, str], *, but: str) -> bool:
    return process in _others(holders, but)


def _others(holders: Mapping[str, str], but: str) -> Iterable[str]:
    return (
        holder for name, holder in holders.items() if name != but and not name.startswith("house")
    )
