"""Placement: which process should hold which loop, when there are several.

The process that hands over should compute nothing else (DESIGN section 5): `levels` leads,
`wheel` goes where `levels` is, every further `levels-N` and `housekeeping` go elsewhere. A
placement is a wish: a free lease that nobody better takes within two ticks is taken, and a lost
one at once.

Example: A holds levels, B holds wheel and housekeeping. B gives wheel to its standby A, and then
keeps housekeeping, because A hands over.
"""

from collections.abc import Iterable, Mapping

#: The loop that all others are placed by.
LEADER = "levels"
_FOLLOWERS = frozenset({"wheel"})


def is_well_placed(group: str, process: str, holders: Mapping[str, str]) -> bool:
    """Whether `process` is a good place for `group`; `holders` names who holds the other loops."""
    leader = holders.get(LEADER)
    if group == LEADER or leader is None:
        return True
    if group in _FOLLOWERS:
        return leader == process
    return not _hands_over(process, holders, but=group)


def followers_of(group: str) -> frozenset[str]:
    """The groups that go where this one goes."""
    return _FOLLOWERS if group == LEADER else frozenset()


def is_better_placed(group: str, standby: str, holder: str, holders: Mapping[str, str]) -> bool:
    """Whether `group` should move from its holder's process to its standby's."""
    return is_well_placed(group, standby, holders) and not is_well_placed(group, holder, holders)


def _hands_over(process: str, holders: Mapping[str, str], *, but: str) -> bool:
    return process in _others(holders, but)


def _others(holders: Mapping[str, str], but: str) -> Iterable[str]:
    return (
        holder for name, holder in holders.items() if name != but and not name.startswith("house")
    )
