"""Broadcasting: each consumer of a group gets every message, and its receipts say whose they are.

A member stands in ledgers of its own (`queues.store.members`), so whatever a group does with its
receipts is done member by member. A receipt begins with the member's digits and a dot.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from queues import wires
from queues.codes import Code
from queues.problems import Problem
from queues.selectors.control import GroupView
from queues.services.positions import keep_positions
from queues.store.deliveries import Delivery
from queues.store.errors import MembersFull
from queues.store.members import SEPARATOR, Member

Outcome = TypeVar("Outcome")
_DOT = "."


def is_broadcasting(group: GroupView) -> bool:
    """Whether each of its consumers gets every message."""
    return group.mode == "broadcasting"


def enter(group: GroupView, consumer_id: str | None) -> Member:
    """The member that asks; a new one begins where the group says."""
    if consumer_id is None:
        detail = "A broadcasting group gives each consumer_id every message."
        raise Problem(Code.FIELD_REQUIRED, detail, pointer="/consumer_id")
    wiring = wires.wiring()

    def begin(name: str) -> None:
        keep_positions(name, group.subscriptions, latest=group.start_from == "latest")

    members, now_ms = wiring.get_consuming().members, wiring.get_clock().now_ms()
    try:
        return members.enter(group.name, consumer_id, now_ms, begin)
    except MembersFull as full:
        detail = f"A broadcasting group has at most {full.fields['maximum']} consumers."
        raise Problem(Code.OUT_OF_BOUNDS, detail, pointer="/consumer_id") from None


def names_of(group: GroupView) -> list[str]:
    """What its ledgers know the group by: its name, or its members'."""
    if not is_broadcasting(group):
        return [group.name]
    return [member.name for member in wires.wiring().get_consuming().members.of(group.name)]


def as_shown(member: Member, deliveries: Iterable[Delivery]) -> list[Delivery]:
    """Deliveries with receipts that say whose they are."""
    return [one._replace(receipt=mark(member.name, one.receipt)) for one in deliveries]


def mark(name: str, receipt: str) -> str:
    """A receipt that says whose it is: the group's, or a member's."""
    _, found, digits = name.partition(SEPARATOR)
    return f"{digits}{_DOT}{receipt}" if found else receipt


def settle(
    group: GroupView, receipts: Sequence[str],
    act: Callable[[str, Sequence[str]], Sequence[Outcome]], invalid: Outcome,
) -> list[Outcome]:  # fmt: skip
    """Do something with the receipts of a group, each under the name that it is of.

    `act` is given a name and its receipts; what no member can have shown is `invalid`.
    """
    if not is_broadcasting(group):
        return list(act(group.name, receipts))
    outcomes = [invalid] * len(receipts)
    positions: dict[str, list[int]] = {}
    for position, receipt in enumerate(receipts):
        digits, found, _ = receipt.partition(_DOT)
        if found and digits.isalnum() and digits.isascii():
            positions.setdefault(f"{group.name}{SEPARATOR}{digits}", []).append(position)
    for name, places in positions.items():
        mine = [receipts[position].partition(_DOT)[2] for position in places]
        for position, outcome in zip(places, act(name, mine), strict=True):
            outcomes[position] = outcome
    return outcomes


def forget_members(group: str) -> None:
    """Forget all consumers of a group."""
    wires.wiring().get_consuming().members.forget(group)
