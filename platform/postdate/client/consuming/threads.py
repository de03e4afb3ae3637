"""A consumer on threads: one polls, some work, one renews and settles.

    def handle(message: ReceivedMessage) -> None: ...

    Consumer(client, "billing", handle, concurrency=16).run()

A handler that returns acks its message; one that raises has it tried again with the exception as
the reason (`RetryLater` and `DeadLetterNow` say it more exactly). `run` ends after `stop`, or with
SIGINT or SIGTERM when it runs in the main thread: what was not begun is released at once.
"""

import queue
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from postdate.client.consuming.holding import Held, Holdings, Settlement
from postdate.client.consuming.outcomes import ACK, Figures, Outcome
from postdate.client.consuming.working import POLL_AGAIN_S, Working, failed, is_final, logger
from postdate.client.errors import ConsumerFailed, PostdateError
from postdate.client.pausing import monotonic
from postdate.client.shapes.consuming import ReceiptResult, ReceivedMessage
from postdate.client.sync.client import Client

Handler = Callable[[ReceivedMessage], object]


class Consumer:
    """Runs a handler for the messages of a group, in threads."""

    def __init__(self, client: Client, group: str, handler: Handler, **working: Any) -> None:
        """`working` are the fields of `Working`: concurrency, prefetch, lease_seconds, …"""
        self._working = Working(**working)
        self._group = client.group(group)
        self._handler = handler
        self._holdings = Holdings(self._working.capacity, self._working.lease_seconds)
        self._changed = threading.Condition()
        self._jobs: queue.SimpleQueue[Held | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._ending = False
        #: What ended a part of it before its time.
        self._broken_by: BaseException | None = None

    @property
    def figures(self) -> Figures:
        """What it has done so far."""
        return self._holdings.figures

    def stop(self) -> None:
        """Have `run` end: no new messages, handlers finish, the rest is released."""
        self._stopping.set()
        # Not under the condition: a signal handler may interrupt the thread that holds it. Whoever
        # waits for room looks at the flag within a second.

    def run(self) -> None:
        """Consume until `stop`; raises what makes polling useless (a wrong key, no such group).

        `ConsumerFailed` says that a part of it ended before its time.
        """
        workers = [self._thread(self._work) for _ in range(self._working.concurrency)]
        settler = self._thread(self._settle)
        with _stopped_by_signals(self.stop):
            try:
                self._poll()
            finally:
                self._end(workers, settler)
        if self._broken_by is not None:
            raise ConsumerFailed(self._group.name, self._broken_by) from self._broken_by

    def _thread(self, target: Callable[[], None]) -> threading.Thread:
        # Daemons: a handler that never returns must not keep the process alive.
        thread = threading.Thread(
            target=self._part, args=(target,), daemon=True, name=f"consumer-{target.__name__}"
        )
        thread.start()
        return thread

    def _part(self, work: Callable[[], None]) -> None:
        """Have the whole end with a part that fails: nothing would be settled, or renewed."""
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (`run` raises it)
            self._broken_by = self._broken_by or error
            self._stopping.set()

    # --- polling

    def _poll(self) -> None:
        while not self._stopping.is_set():
            with self._changed:
                if not self._changed.wait_for(lambda: self._holdings.room > 0, 1.0):
                    continue
                room = self._holdings.room
            asked_s = monotonic()
            messages = self._receive(room)
            with self._changed:
                taken = self._holdings.take(messages, asked_s)
                self._changed.notify_all()
            for held in taken:
                self._jobs.put(held)

    def _receive(self, room: int) -> list[ReceivedMessage]:
        working = self._working
        try:
            received = self._group.receive(
                max_messages=working.asked(room),
                wait_seconds=working.poll_seconds,
                lease_seconds=working.lease_seconds,
                consumer_id=working.consumer_id,
            )
        except PostdateError as error:
            if is_final(error):
                raise
            logger.warning("Receiving for %s failed: %s", self._group.name, error)
            self._stopping.wait(POLL_AGAIN_S)
            return []
        if received.paused:
            self._stopping.wait(POLL_AGAIN_S)
        return received.messages

    # --- working

    def _work(self) -> None:
        while (held := self._jobs.get()) is not None:
            with self._changed:
                # After `stop` nothing is begun, though the poll may take a while to come back.
                may_start = not self._stopping.is_set() and self._holdings.start(held)
            if not may_start:
                continue
            outcome = self._handle(held.message)
            with self._changed:
                self._holdings.finish(held, outcome)
                self._changed.notify_all()

    def _handle(self, message: ReceivedMessage) -> Outcome:
        try:
            self._handler(message)
        except KeyboardInterrupt:
            raise  # It means the consumer.
        except BaseException as error:  # noqa: BLE001 (whatever a handler raises is its outcome)
            return failed(message, error)
        return ACK

    # --- renewing and settling

    def _settle(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._has_errand, self._until_renewal())
                if self._holdings.finished and not self._ending:
                    self._linger()
                renewals = self._holdings.due_renewals(monotonic())
                settlements = self._holdings.settlements()
                if self._ending and not settlements and self._holdings.empty:
                    return
            if renewals:
                self._renew(renewals)
            for settlement in settlements:
                self._tell(settlement)

    def _has_errand(self) -> bool:
        return self._holdings.finished > 0 or self._ending

    def _linger(self) -> None:
        """Wait a moment for acks to go together, unless everything held is finished already."""
        full = self._holdings.capacity - self._holdings.room
        self._changed.wait_for(
            lambda: self._holdings.finished >= full or self._ending, self._working.linger_seconds
        )

    def _until_renewal(self) -> float:
        next_s = self._holdings.next_renewal_s()
        return 1.0 if next_s is None else min(1.0, max(0.0, next_s - monotonic()))

    def _renew(self, held: Sequence[Held]) -> None:
        asked_s = monotonic()
        try:
            results = self._group.extend(
                [one.receipt for one in held], lease_seconds=self._working.lease_seconds
            )
        except PostdateError as error:
            logger.warning("Leases could not be renewed: %s", error)
            with self._changed:
                self._holdings.not_renewed(held, monotonic())
            return
        with self._changed:
            self._holdings.renewed(held, results, asked_s)

    def _tell(self, settlement: Settlement) -> None:
        try:
            results = self._ask(settlement)
        except PostdateError as error:
            logger.warning("%s failed: %s; they come again.", settlement.outcome.verb, error)
            with self._changed:
                self._holdings.let_go(settlement)
                self._changed.notify_all()
            return
        with self._changed:
            self._holdings.settled(settlement, results)
            self._changed.notify_all()

    def _ask(self, settlement: Settlement) -> list[ReceiptResult]:
        outcome, receipts = settlement.outcome, settlement.receipts
        match outcome.verb:
            case "ack":
                return self._group.ack(receipts)
            case "retry":
                return self._group.retry(receipts, delay=outcome.delay, reason=outcome.reason)
            case "dead_letter":
                return self._group.dead_letter(receipts, reason=outcome.reason)
            case "release":
                return self._group.release(receipts)

    # --- the end

    def _end(self, workers: list[threading.Thread], settler: threading.Thread) -> None:
        self._stopping.set()
        for _ in workers:
            self._jobs.put(None)
        with self._changed:
            self._holdings.give_back(running=False)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._holdings.running == 0, self._working.grace_seconds)
            self._holdings.give_back(running=True)
            self._ending = True
            self._changed.notify_all()
        settler.join()


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM stop the consumer, where it runs in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
