"""Waiting: how a receive that found nothing sleeps until its group has something.

One thread a process, the *watch*, waits on the store's doorbell and looks which queues grew. It
wakes as many of a group's waiters as messages came, never all for one: each of them would ask every
queue. The waiters sleep, each on its group's condition, and cost nothing meanwhile. While nobody
waits the watch sleeps too.

Whoever gives leases back rings a bell of its own before the store's: then the groups' ledgers are
looked at. A group is also looked at when a lease of its own runs out, and at least every two
seconds for what rings no bell. A wake is a hint: another process may have been faster, and the
woken receive then waits again.

Example: 3 messages come while 5 receives of group ``billing`` wait and 9 of ``mail``, both of which
subscribe to their topic: 3 of the 5 and 3 of the 9 are woken.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from queues.store.clock import Clock
from queues.store.consuming import Consuming, Subscription
from queues.store.doorbell import Bell
from queues.store.handout import QueueReader
from queues.store.limits import WAITERS_MAX

#: How long the watch sleeps at most: how late it may notice that a lease ran out.
_TICK_MS = 40
#: How long it rests after a look, so that a fast sender cannot keep it busy: longer when what came
#: was for nobody who waits.
_REST_S, _LONG_REST_S = 0.001, 0.005
#: A group is looked at once in so many ticks, bell or not: two seconds.
_TICKS_A_ROUND = 50
#: Groups that are looked at together: ordered ones in each tick, and all when leases came back.
_GROUPS_AT_ONCE = 100


class Tips(QueueReader, Protocol):
    """The reading side of the store, with a look at all queues at once."""

    def queue_tips(self) -> npt.NDArray[np.int64]:
        """The next offset of every queue, by its number; the last ones may not be readable yet."""

    def queue_place(self, number: int) -> tuple[str, int]:
        """Topic and queue of a queue's number."""

    def generation(self) -> int:
        """How often the control plane was changed, by any process."""


@dataclass(slots=True)
class _Group:
    """A group with waiters."""

    subscriptions: Sequence[Subscription]
    condition: threading.Condition
    waiters: int = 0
    #: Wakes that no waiter has taken yet.
    wakes: int = 0
    #: When the first of its leases runs out, wall time in ms; None if that is not known.
    expiry_ms: int | None = None
    #: The last look at its ledgers found something ready.
    was_ready: bool = False
    #: An ack in another process may let its next message come, and rings no bell.
    ordered: bool = False


@dataclass(slots=True)
class _State:
    """What the mutex guards."""

    groups: dict[str, _Group] = field(default_factory=dict)
    #: Topic to the groups that wait for it.
    names: dict[str, set[str]] = field(default_factory=dict)
    #: Up to where each queue of their topics was seen.
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    #: The next offset of every queue at the last look, or how much of it could be read.
    tips: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    waiting: int = 0
    closed: bool = False
    thread: threading.Thread | None = None


class ReadyWatch:
    """Wakes receives of this process; safe for threads, unusable after a fork."""

    def __init__(
        self, reader: Tips, bell: Bell, consuming: Consuming, clock: Clock,
        given_back: Bell | None = None,
    ) -> None:  # fmt: skip
        self._given_back = given_back
        self._reader, self._bell, self._consuming, self._clock = reader, bell, consuming, clock
        self._mutex = threading.Lock()
        self._arrival = threading.Condition(self._mutex)
        self._stop = threading.Event()
        self._state = _State()
        self._round: list[str] = []
        #: Whether a group is paused, gone, or has other subscriptions than these by now.
        self.is_changed: Callable[[str, Sequence[Subscription]], bool] = lambda *_: False

    def wait(self, group: str, subscriptions: Sequence[Subscription], timeout_s: float) -> bool:
        """Sleep until a receive may find something (True), or for `timeout_s` seconds (False).

        False at once when too many wait already, or the watch is closed.
        """
        entry = self._enter(group, subscriptions)
        if entry is None:
            return False
        try:
            # What came since the receive that found nothing is seen here, what comes from now on
            # by the watch.
            outlook = self._consuming.outlook(group, subscriptions, self._clock.now_ms())
            if outlook.ready:
                return True
            with self._mutex:
                if outlook.next_expiry_ms is not None:
                    entry.expiry_ms = _sooner(entry.expiry_ms, outlook.next_expiry_ms)
                return self._sleep(entry, timeout_s)
        finally:
            self._leave(group, entry)

    def _sleep(self, entry: _Group, timeout_s: float) -> bool:
        state = self._state
        entry.condition.wait_for(lambda: entry.wakes > 0 or state.closed, timeout_s)
        if not entry.wakes or state.closed:
            return False
        entry.wakes -= 1
        return True

    def wake(self, group: str, count: int = 1) -> None:
        """Wake up to `count` receives of the group (there is more than the caller could take)."""
        with self._mutex:
            self._wake(group, count)

    def close(self) -> None:
        """Let all waiters go and end the thread."""
        with self._mutex:
            state = self._state
            state.closed = True
            for entry in state.groups.values():
                entry.condition.notify_all()
            self._arrival.notify_all()
            thread = state.thread
        self._stop.set()
        if thread is not None:
            thread.join()

    # ---- waiters

    def _enter(self, group: str, subscriptions: Sequence[Subscription]) -> _Group | None:
        with self._mutex:
            state = self._state
            if state.closed or state.waiting >= WAITERS_MAX:
                return None
            entry = state.groups.get(group)
            if entry is None:
                condition = threading.Condition(self._mutex)
                entry = state.groups[group] = _Group(subscriptions, condition)
            self._subscribe(group, entry, subscriptions)
            entry.ordered = self._consuming.ordered_of(group)
            entry.waiters += 1
            state.waiting += 1
            self._learn(entry)
            if state.thread is None or not state.thread.is_alive():
                # Read before this waiter looks for itself: no ring falls between the two.
                rung = self._bell.value(), self._count_given()
                state.thread = threading.Thread(
                    target=self._run, args=rung, name="ready-watch", daemon=True
                )
                state.thread.start()
            self._arrival.notify()
            return entry

    def _subscribe(self, group: str, entry: _Group, subscriptions: Sequence[Subscription]) -> None:
        """Find the group by the topics that it waits for now, and by no others."""
        names = self._state.names
        for old in entry.subscriptions:
            if group in (waiting := names.get(old.topic, set())):
                waiting.remove(group)
                if not waiting:
                    del names[old.topic]
        for new in subscriptions:
            names.setdefault(new.topic, set()).add(group)
        entry.subscriptions = subscriptions

    def _learn(self, entry: _Group) -> None:
        """Begin to watch the group's queues where they are now."""
        for subscription in entry.subscriptions:
            for queue_id in self._reader.queue_ids(subscription.topic):
                place = subscription.topic, queue_id
                if place not in self._state.ends:
                    self._state.ends[place] = self._reader.queue_bounds(*place).max_offset
                    # An earlier look may have passed by what cannot be read yet: look again.
                    self._state.tips = self._state.tips[:0]

    def _leave(self, group: str, entry: _Group) -> None:
        with self._mutex:
            self._state.waiting -= 1
            entry.waiters -= 1
            # A wake that came as its waiter gave up is another's, if there is one.
            entry.wakes = min(entry.wakes, entry.waiters)
            if not entry.waiters:
                self._subscribe(group, entry, ())
                del self._state.groups[group]
            if not self._state.waiting:
                self._state.ends.clear()

    def _wake(self, group: str, count: int) -> None:
        entry = self._state.groups.get(group)
        if entry is None:
            return
        more = min(count, entry.waiters - entry.wakes)
        if more > 0:
            entry.wakes += more
            entry.condition.notify(more)

    # ---- the watch

    def _run(self, seen: int, given: int) -> None:
        ticked_ms, generation, looks = 0, self._reader.generation(), 1
        while True:
            with self._mutex:
                while not self._state.waiting and not self._state.closed:
                    self._arrival.wait()
                if self._state.closed:
                    return
            rung = self._bell.wait(seen, _TICK_MS / 1000)
            if rung != seen:
                seen = rung
                woken = self._look_at_queues()
                if (now_given := self._count_given()) != given:
                    given = now_given
                    self._look_at_all_groups()
                self._stop.wait(_REST_S if woken else _LONG_REST_S)
            if self._clock.monotonic_ms() - ticked_ms >= _TICK_MS:
                ticked_ms = self._clock.monotonic_ms()
                self._look_at_leases()
                self._look_at_some_groups()
                if generation != (generation := self._reader.generation()):
                    looks = 2  # A receive may have read its group before, and come here after it.
                if looks:
                    looks -= 1
                    self._look_for_changes()

    def _look_at_queues(self) -> bool:
        """Wake for every message that came; whether there was one for somebody who waits.

        Only queues that moved are asked how far they go.
        """
        with self._mutex:
            state, tips = self._state, self._reader.queue_tips()
            moved = np.ones(len(tips), np.bool_)
            moved[: len(state.tips)] = tips[: len(state.tips)] != state.tips
            more: Counter[str] = Counter()
            for number in np.flatnonzero(moved).tolist():
                place = self._reader.queue_place(number)
                if place[0] in state.names:
                    more[place[0]] += self._growth(*place)
                    # What cannot be read yet is looked at again.
                    tips[number] = state.ends[place]
            state.tips = tips
            for topic, count in more.items():
                for name in state.names[topic] if count else ():
                    self._wake(name, count)
            return any(more.values())

    def _growth(self, topic: str, queue_id: int) -> int:
        end = self._reader.queue_bounds(topic, queue_id).max_offset
        before = self._state.ends.get((topic, queue_id), 0)
        self._state.ends[topic, queue_id] = end
        return max(0, end - before)

    def _look_at_leases(self) -> None:
        """Wake one of each group of which a lease ran out."""
        now_ms = self._clock.now_ms()
        with self._mutex:
            for name, entry in self._state.groups.items():
                if entry.expiry_ms is not None and entry.expiry_ms <= now_ms:
                    entry.expiry_ms = None
                    self._wake(name, 1)

    def _look_at_some_groups(self) -> None:
        """Ask the ledgers of some groups, each in its turn; of ordered ones each time."""
        with self._mutex:
            groups = {name: entry.subscriptions for name, entry in self._state.groups.items()}
            ordered = [name for name, entry in self._state.groups.items() if entry.ordered]
        if not self._round:
            self._round = list(groups)
        chosen = self._round[: 1 + len(groups) // _TICKS_A_ROUND]
        del self._round[: len(chosen)]
        for name in {*chosen, *ordered[:_GROUPS_AT_ONCE]}:
            if name in groups:
                self._look_at_group(name, groups[name])

    def _count_given(self) -> int:
        return 0 if self._given_back is None else self._given_back.value()

    def _look_at_all_groups(self) -> None:
        """Leases of one of them were given back; with very many the round finds the others."""
        with self._mutex:
            groups = {name: entry.subscriptions for name, entry in self._state.groups.items()}
        for name in list(groups)[:_GROUPS_AT_ONCE]:
            if self._consuming.ready_hint(name, groups[name], self._clock.now_ms()):
                self.wake(name)

    def _look_for_changes(self) -> None:
        """Wake all receives of groups that were changed since they asked."""
        with self._mutex:
            groups = {name: entry.subscriptions for name, entry in self._state.groups.items()}
        for name, subscriptions in groups.items():
            if self.is_changed(name, subscriptions):
                self.wake(name, WAITERS_MAX)

    def _look_at_group(self, name: str, subscriptions: Sequence[Subscription]) -> None:
        outlook = self._consuming.outlook(name, subscriptions, self._clock.now_ms())
        with self._mutex:
            entry = self._state.groups.get(name)
            if entry is None:
                return
            entry.expiry_ms = outlook.next_expiry_ms
            # What is ready at one look only, somebody who was woken is about to take.
            if outlook.ready and (entry.was_ready or entry.ordered):
                self._wake(name, 1)
            entry.was_ready = outlook.ready


def _sooner(one_ms: int | None, other_ms: int) -> int:
    return other_ms if one_ms is None else min(one_ms, other_ms)
