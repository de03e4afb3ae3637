"""Leases: which messages a group's consumers hold, who, and until when."""

from dataclasses import dataclass

from queues import wires
from queues.selectors.control import GroupView
from queues.store.leases import Lease
from queues.store.record import Record, decode_record


@dataclass(frozen=True, slots=True)
class LeasePage:
    """Some of a group's leases, and how many there are."""

    #: With the record that is held; None if it cannot be read.
    leases: list[tuple[Lease, Record | None]]
    count: int
    #: There are more behind these.
    more: bool


def list_leases(
    group: GroupView, *, after: tuple[str, int, int, str] | None, limit: int
) -> LeasePage:
    """A page of leases by topic, queue and offset, after such a place."""
    held = sorted(_held(group), key=place_of)
    rest = [lease for lease in held if after is None or place_of(lease) > after]
    page = rest[:limit]
    return LeasePage([(lease, _record(lease)) for lease in page], len(held), len(rest) > limit)


def _held(group: GroupView) -> list[Lease]:
    wiring = wires.wiring()
    consuming, now_ms = wiring.get_consuming(), wiring.get_clock().now_ms()
    if group.mode != "broadcasting":
        return consuming.leases.held(group.name, now_ms)
    return [
        lease._replace(consumer_id=member.consumer_id)
        for member in consuming.members.of(group.name)
        for lease in consuming.leases.held(member.name, now_ms)
    ]


def place_of(lease: Lease) -> tuple[str, int, int, str]:
    """Where the list goes on after a lease."""
    return lease.place.topic, lease.place.queue_id, lease.queue_offset, lease.consumer_id or ""


def _record(lease: Lease) -> Record | None:
    store = wires.wiring().get_store()
    units = store.read_units(lease.place.topic, lease.place.queue_id, lease.queue_offset, 1)
    records = store.read_records(units)
    return decode_record(records[0], verify=False) if records and records[0] else None
