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


def list_leases(group: GroupView, *, after: tuple[str, int, int] | None, limit: int) -> LeasePage:
    """A page of leases by topic, queue and offset, after such a place."""
    wiring = wires.wiring()
    held = wiring.get_consuming().leases.held(group.name, wiring.get_clock().now_ms())
    rest = [lease for lease in held if after is None or place_of(lease) > after]
    page = rest[:limit]
    return LeasePage([(lease, _record(lease)) for lease in page], len(held), len(rest) > limit)


def place_of(lease: Lease) -> tuple[str, int, int]:
    """Where the list goes on after a lease."""
    return lease.place.topic, lease.place.queue_id, lease.queue_offset


def _record(lease: Lease) -> Record | None:
    store = wires.wiring().get_store()
    units = store.read_units(lease.place.topic, lease.place.queue_id, lease.queue_offset, 1)
    records = store.read_records(units)
    return decode_record(records[0], verify=False) if records and records[0] else None
