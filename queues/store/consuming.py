"""Consuming: groups receive messages on lease and settle them.

A group stands at its own place in every queue of the topics that it subscribes to; a *ledger* a
queue keeps what was leased and what is settled. A message is delivered at least once to each group:
a lease that runs out makes it ready again, with the next attempt number.

Any number of processes consume from one store. Whoever works on a queue holds that ledger's lock
for about a millisecond; a receive that finds it held goes on to the next queue first, so consumers
of different queues do not wait for each other.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from operator import add

from queues.store.acknowledging import Acknowledging, Outcome
from queues.store.asking import Request, Stop
from queues.store.consumed import ConsumedStore
from queues.store.consumers import ConsumerNames
from queues.store.deliveries import Delivery, HandedOut, Outlook, Received, Subscription
from queues.store.dropping import Dropping
from queues.store.failing import Failing
from queues.store.groupoffsets import GroupOffsets
from queues.store.handout import Ask, Taken, hand_out
from queues.store.lag import QueueLag, measure_lag
from queues.store.leases import LeaseKeeping
from queues.store.ledger import Ledger
from queues.store.ledgerentries import attempts_of
from queues.store.ledgerheader import Header
from queues.store.ledgers import Ledgers, Place, held
from queues.store.limits import LEASE_MS_MAX, LEASES_MAX, LEDGER_WAIT_S, RECEIVE_BYTES_MAX
from queues.store.members import Members
from queues.store.names import RETRY_PREFIX
from queues.store.ordering import Ordering, leave_order
from queues.store.receipts import Receipts
from queues.store.resetting import Resetting
from queues.store.retryrules import RetryRule
from queues.store.settling import expire_leases
from queues.store.standing import Standing, standing_of
from queues.store.tagfilter import TagFilter
from queues.store.tracing import Traces

__all__ = ["Consuming", "Delivery", "Outlook", "QueueLag", "Received", "Subscription"]


class Consuming:
    """The groups of one store, for one process; safe for threads, unusable after a fork."""

    def __init__(self, store: ConsumedStore, secret: bytes) -> None:
        self._store = store
        self._disk = store.disk
        #: Leaves traces of receives and acks; None: none are left.
        self.tracer: Traces | None = None
        self._receipts = Receipts(secret)
        self._ledgers = Ledgers(store.disk, store.root / "postdate" / "ledger", store.chains.mend)
        self._offsets = GroupOffsets(store.disk, store.root)
        self._consumers = ConsumerNames(store.disk, store.root / "postdate" / "consumers")
        #: Leases of their holders: extend, release, list.
        self.leases = LeaseKeeping(self._ledgers, self._receipts, self._consumers)
        #: Lets groups begin anew elsewhere.
        self.resetting = Resetting(self._ledgers, store.disk)
        #: The consumers of broadcasting groups.
        self.members = Members(store.disk, store.root / "postdate" / "members", self._forget_member)
        self._acknowledging = Acknowledging(self._ledgers, self._receipts)
        self.dropping = Dropping(self._ledgers, self._receipts)
        #: Attempts that failed.
        self.failing = Failing(store, self._ledgers, self._receipts, self._consumers)
        #: How a group tries again; None: what ran out is ready again, and nothing is retried.
        self.rule_of: Callable[[str], RetryRule | None] = lambda _: None
        #: Whether a group gets the messages of a sharding key one after the other.
        self.ordered_of: Callable[[str], bool] = lambda _: False
        self._ordering = Ordering(store, self._peek)
        self._turns: dict[str, int] = {}

    # ---- groups

    def ensure_group(self, group: str, topic: str, queue_id: int, start_offset: int) -> None:
        """Let the group begin at an offset of a queue, durably; nothing if it already stands there.

        A queue that nobody named begins at 0 with the group's first receive.
        """
        place = Place(group, topic, queue_id)
        with self._ledgers.use(place) as ledger:
            with self._holding(ledger, place, start_offset):
                pass
            ledger.sync()

    def drop_group(self, group: str) -> None:
        """Forget the group: its receipts are void, and a group made anew inherits nothing.

        Safe to repeat; a group counts as dropped once this returned.
        """
        self._offsets.forget(group)
        for place in self._ledgers.places(group):
            with self._ledgers.use(place) as ledger, held(ledger, place):
                ledger.drop()
        self._turns.pop(group, None)

    def _forget_member(self, name: str) -> None:
        self.drop_group(name)
        self._ledgers.remove(name)

    # ---- messages

    def receive(
        self,
        group: str,
        subscriptions: Sequence[Subscription],
        *,
        max_messages: int,
        lease_ms: int,
        now_ms: int,
        bytes_max: int = RECEIVE_BYTES_MAX,
        consumer_id: str | None = None,
    ) -> Received:
        """Lease up to `max_messages` ready messages to the caller, queues taking turns."""
        assert max_messages > 0
        assert 0 < lease_ms <= LEASE_MS_MAX
        consumer = self._consumers.number_of(group, consumer_id)
        expires = self.rule_of(group) is None
        request = Request(max_messages, bytes_max, now_ms + lease_ms, now_ms, consumer, expires)
        stops = self._in_turn(group, subscriptions)
        busy = [stop for stop in stops if not self._take(stop, request, 0.0)]
        if busy and not request.received.deliveries:
            wait_s = LEDGER_WAIT_S / len(busy)
            taken = [self._take(stop, request, wait_s) for stop in busy]
            request.received.more |= not all(taken)
        if request.last_turn is not None:
            self._turns[group] = request.last_turn + 1
        if self.tracer is not None and request.received.deliveries:
            self.tracer.received(group, request.handed)
        return request.received

    def _take(self, stop: Stop, request: Request, wait_s: float) -> bool:
        """Add what one queue has; False if its ledger is held by another for longer."""
        ask = request.ask(stop)
        if ask is None:
            request.received.more = True
            return True
        place = stop.place
        with self._ledgers.use(place) as ledger:
            header = ledger.peek()
            if header is not None and not self._may_have(place, header, ask.now_ms, ask.expires):
                if header.leased >= LEASES_MAX:
                    request.received.full.append((place.topic, place.queue_id))
                return True
            if not ledger.try_hold(wait_s):
                return False
            try:
                self._prepare(ledger, place)
                taken = self._hand_out(ledger, place, ask)
                epoch = ledger.live().epoch
            finally:
                ledger.release()
        if taken.records:
            request.last_turn = stop.turn
            request.bytes_max -= taken.bytes_taken
            handed = _handed_out(place, taken)
            request.handed.append(handed)
            bouts = taken.bouts
            request.received.deliveries += self._deliveries(
                place.group, handed, bouts, epoch=epoch, until_ms=ask.until_ms
            )
        request.received.damaged += taken.damaged
        request.received.more |= taken.more
        if taken.full:
            request.received.full.append((place.topic, place.queue_id))
        return True

    def _hand_out(self, ledger: Ledger, place: Place, ask: Ask) -> Taken:
        if self.ordered_of(place.group) and not place.topic.startswith(RETRY_PREFIX):
            return self._ordering.hand_out(ledger, place, ask)
        if ledger.live().ordered:
            leave_order(ledger)
        return hand_out(ledger, self._store, ask)

    def _deliveries(
        self, group: str, handed: HandedOut, bouts: Sequence[int], *, epoch: int, until_ms: int
    ) -> Iterator[Delivery]:
        topic, queue_id, records, offsets, attempts = handed
        receipts = self._receipts.seal(
            group, topic, queue_id, epoch=epoch, offsets=offsets, bouts=bouts, until_ms=until_ms
        )
        columns = records, repeat(topic), repeat(queue_id), offsets, attempts, receipts
        rows = zip(*columns, repeat(until_ms), strict=False)
        return map(tuple.__new__, repeat(Delivery), rows)  # As `Delivery._make`, but quicker.

    def ack(self, group: str, receipts: Sequence[str], now_ms: int) -> list[Outcome]:
        """Settle what the receipts are for; see `Acknowledging.ack`."""
        outcomes, settled = self._acknowledging.ack(group, receipts, now_ms)
        if self.tracer is not None and settled:
            self.tracer.acked(group, settled)
        return outcomes

    # ---- where groups stand

    def lag(self, group: str, subscriptions: Sequence[Subscription]) -> list[QueueLag]:
        """What each queue still has for the group."""
        return [
            self._lag(place, tags) for _, place, tags in sorted(self._in_turn(group, subscriptions))
        ]

    def _lag(self, place: Place, tags: TagFilter) -> QueueLag:
        with self._ledgers.use(place) as ledger:
            header = ledger.peek()
            if header is None:  # The group never came here: it stands at its start.
                with self._holding(ledger, place) as live:
                    header = replace(live)
            first_again = ledger.first_ready(header) if header.again else None
            return measure_lag(self._store, header, first_again, place, tags)

    def standing(
        self, group: str, topic: str, queue_id: int, offset: int, now_ms: int
    ) -> Standing | None:
        """How far the group is with one message; None if it is none of its."""
        place = Place(group, topic, queue_id)
        header = self._header_of(place)
        if header is None:  # The group never came here: it begins at 0.
            return Standing("ready", 0)
        with self._ledgers.use(place) as ledger:
            return standing_of(header, ledger.word(offset), offset, now_ms)

    def stands_in(self, group: str, topic: str) -> bool:
        """Whether the group has begun in any queue of a topic."""
        places = [place for place in self._ledgers.places(group) if place.topic == topic]
        return any(self._header_of(place) is not None for place in places)

    def outlook(self, group: str, subscriptions: Sequence[Subscription], now_ms: int) -> Outlook:
        """Whether a receive may find something, cheaply: no lock is taken."""
        soonest: int | None = None
        expires = self.rule_of(group) is None
        for _, place, _ in self._in_turn(group, subscriptions):
            header = self._peek(place)
            if header is None or self._may_have(place, header, now_ms, expires):
                return Outlook(ready=True, next_expiry_ms=None)
            if header.leased:
                soonest = min(soonest or header.next_expiry_ms, header.next_expiry_ms)
        return Outlook(ready=False, next_expiry_ms=soonest)

    def ready_hint(self, group: str, subscriptions: Sequence[Subscription], now_ms: int) -> bool:
        """Whether a receive may find something."""
        return self.outlook(group, subscriptions, now_ms).ready

    # ---- housekeeping

    def expire(self, now_ms: int) -> int:
        """Fail the attempts whose lease ran out, in all groups; return how many.

        Without a rule their messages are ready again.

        A ledger that is in use is left to the next call, a second later, or to its next receive.
        """
        return sum(self._expire(place, now_ms) for place in self._ledgers.places())

    def _expire(self, place: Place, now_ms: int) -> int:
        with self._ledgers.use(place) as ledger:
            header = ledger.peek()
            if header is not None and not header.expiry_due(now_ms, LEASE_MS_MAX):
                return 0
            if not ledger.try_hold():
                return 0
            try:
                if ledger.header is None:
                    return 0
                rule = self.rule_of(place.group)
                if rule is not None:
                    return self.failing.expire(ledger, place, rule, now_ms)
                ran_out = expire_leases(ledger, now_ms)
                if ran_out:
                    ledger.commit()
                return ran_out
            finally:
                ledger.release()

    def leased_from(self) -> int | None:
        """A log offset that no leased message lies before; None without leases.

        Takes no lock: retention asks it under the append lock, which comes after the ledgers'.
        """
        found = [self._leased_from(place) for place in self._ledgers.places()]
        return min((offset for offset in found if offset is not None), default=None)

    def _leased_from(self, place: Place) -> int | None:
        with self._ledgers.use(place) as ledger:
            first = ledger.first_leased()
        if first is None:
            return None
        unit = self._store.read_units(place.topic, place.queue_id, first, 1)
        return int(unit["log_offset"][0]) if len(unit) else None

    def save_offsets(self) -> None:
        """Put all ledgers on the device, then write ``config/consumerOffset.json``.

        The log first: the ledgers tell of retries and dead letters in it.
        """
        self._store.flush()
        floors: dict[Place, int] = {}
        for place in self._ledgers.places():
            with self._ledgers.use(place) as ledger:
                floor = ledger.sync()
            if floor is not None:
                floors[place] = floor
        self._offsets.save(floors)

    def close(self) -> None:
        """Save the offsets and give all descriptors back."""
        self.save_offsets()
        self._ledgers.close()
        self._offsets.close()

    # ---- inside

    def _in_turn(self, group: str, subscriptions: Sequence[Subscription]) -> list[Stop]:
        """All queues of the group, beginning with the one after that which gave last."""
        stops = [
            (Place(group, subscription.topic, queue_id), TagFilter.parse(subscription.tags))
            for subscription in subscriptions
            for queue_id in self._store.queue_ids(subscription.topic)
        ]
        start = self._turns.get(group, 0) % len(stops) if stops else 0
        return [Stop(turn, *stops[turn]) for turn in (*range(start, len(stops)), *range(start))]

    def _prepare(self, ledger: Ledger, place: Place, start_offset: int = 0) -> None:
        """Begin a ledger that is missing (under its lock) where the offsets file says, or else."""
        if ledger.header is not None:
            return
        saved = self._offsets.find(place)
        if saved is not None:
            end = self._store.queue_bounds(place.topic, place.queue_id).max_offset
            start_offset = min(saved, end)
        # At once, so that power loss never takes the ledger from under what it told of before.
        self._ledgers.sync_names(place)
        ledger.begin_at(start_offset, int.from_bytes(self._disk.random_bytes(7), "little"))
        try:
            ledger.sync()
        except OSError:
            ledger.drop()  # The next one begins it anew.
            raise

    @contextmanager
    def _holding(self, ledger: Ledger, place: Place, start_offset: int = 0) -> Iterator[Header]:
        with held(ledger, place):
            self._prepare(ledger, place, start_offset)
            yield ledger.live()

    def _peek(self, place: Place) -> Header | None:
        if not self._ledgers.exists(place):
            return None
        with self._ledgers.use(place) as ledger:
            return ledger.peek()

    def _header_of(self, place: Place) -> Header | None:
        """Where a group stands in a queue; None if it never came there."""
        header = self._peek(place)
        if header is None:  # Maybe only this process has not asked for it yet.
            with self._ledgers.hold(place) as ledger:
                header = None if ledger is None else replace(ledger.live())
        return header

    def _may_have(self, place: Place, header: Header, now_ms: int, expires: bool) -> bool:
        if expires and header.expiry_due(now_ms, LEASE_MS_MAX):
            return True
        if header.leased >= LEASES_MAX:
            return False
        end = self._store.queue_bounds(place.topic, place.queue_id).max_offset
        if not header.again and header.cursor >= end:
            return False
        return not header.ordered or self._ordering.may_have(place, header, now_ms)


def _handed_out(place: Place, taken: Taken) -> HandedOut:
    attempts = attempts_of(taken.bouts)
    if place.topic.startswith(RETRY_PREFIX):  # Those that failed before are counted in the record.
        failed = [int.from_bytes(record[72:76], "big") for record in taken.records]
        attempts = list(map(add, attempts, failed))
    return HandedOut(place.topic, place.queue_id, taken.records, taken.offsets, attempts)
