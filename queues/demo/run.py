"""A run posts every order of a plan, pays some, closes the rest, and adds up.

It ends when each accepted order is cancelled or closed, or some time after the last deadline: what
is still waiting then is lost. The consumers listen a little longer, so that a message that comes
twice, or after its cancel, is seen.
"""

import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from queues.demo.accounts import Accounts, Summary
from queues.demo.buyers import Errands, buy
from queues.demo.client import Client
from queues.demo.closers import close_orders, open_group
from queues.demo.orders import DEADLINE_MS_MAX, Parcel, plan_orders
from queues.store.clock import SystemClock

QUEUES = 8
BUYERS, CLOSERS = 4, 2
REPORT_S = 0.5


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What one run is told."""

    base_url: str
    api_key: str
    orders: int
    seed: int
    #: Server and demo read the same clock, so arrivals are judged by it too.
    same_clock: bool
    #: How long a consumer may keep a message, in seconds.
    lease_seconds: int = 60
    #: The latest deadline after a post, in milliseconds.
    deadline_ms_max: int = DEADLINE_MS_MAX
    #: How long a request is repeated before the run gives up, in seconds.
    patience_s: int = 60
    #: How long after the last deadline an order may still arrive before it counts as lost.
    grace_s: int = 20


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    elapsed_s: float
    summary: Summary
    #: Orders of the plan, posted or not.
    planned: int
    #: Accepted orders that are neither cancelled nor received yet.
    waiting: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run ends with."""

    summary: Summary
    elapsed_s: float
    #: Requests that had to be repeated because no usable answer came.
    repeats: int
    #: The topic that the orders went through, for looking them up in the store.
    topic: str


class Run:
    """One run against one server."""

    def __init__(self, settings: RunSettings, report: Callable[[Progress], None]) -> None:
        self._settings = settings
        self._report = report
        self._clock = SystemClock()
        self._began_ms = self._clock.monotonic_ms()
        self._stop = threading.Event()
        self._closing = threading.Event()
        self._clients: list[Client] = []
        self._name = f"demo-{secrets.token_hex(4)}"
        self.accounts = Accounts()

    def play(self) -> Outcome:
        """Everything from the first post to the summary.

        Raises ServerUnreachableError or UnexpectedAnswerError when the server does not play along.
        """
        parcels = self._prepare()
        try:
            with ThreadPoolExecutor(max_workers=CLOSERS + 1) as threads:
                try:
                    self._play_on(threads, parcels)
                finally:
                    self._stop.set()
                    self._closing.set()
        finally:
            for client in self._clients:
                client.close()
        repeats = sum(client.repeats for client in self._clients)
        return Outcome(self.accounts.summary(), self._elapsed_s(), repeats, self._name)

    def stop(self) -> None:
        """End the run early; the requests under way are given up."""
        self._stop.set()

    def _prepare(self) -> tuple[Parcel, ...]:
        client = self._connect(1)[0]
        levels = client.expect("GET", "/api/v1/delay-levels").body
        client.expect(
            "PUT", f"/api/v1/topics/{self._name}", {"queues": QUEUES}, statuses=(200, 201)
        )
        open_group(client, self._name, self._name)
        return plan_orders(
            count=self._settings.orders,
            seed=self._settings.seed,
            level_delays_ms={level["level"]: level["delay_ms"] for level in levels},
            deadline_ms_max=self._settings.deadline_ms_max,
        )

    def _play_on(self, threads: ThreadPoolExecutor, parcels: Sequence[Parcel]) -> None:
        errands = Errands(parcels, clock=self._clock, stop=self._stop)
        closers = [threads.submit(self._close, client) for client in self._connect(CLOSERS)]
        buyers = threads.submit(self._buy, errands)
        self._watch(buyers, closers, until=buyers.done)
        patience_ms = self._settings.deadline_ms_max + self._settings.grace_s * 1000
        give_up_ms = self._clock.monotonic_ms() + patience_ms
        self._watch(
            buyers,
            closers,
            until=lambda: not self.accounts.waiting() or self._clock.monotonic_ms() > give_up_ms,
        )
        self._closing.set()
        for closer in closers:
            closer.result()

    def _watch(
        self,
        buyers: Future[None],
        closers: Sequence[Future[None]],
        *,
        until: Callable[[], bool],
    ) -> None:
        """Report until the condition holds; the first error of any thread is raised."""
        while True:
            for future in (buyers, *closers):
                if future.done():
                    future.result()
            self._report_now()
            if until() or self._stop.wait(REPORT_S):
                return

    def _report_now(self) -> None:
        summary = self.accounts.summary()
        waiting = len(self.accounts.waiting())
        self._report(Progress(self._elapsed_s(), summary, self._settings.orders, waiting))

    def _buy(self, errands: Errands) -> None:
        buy(self._connect(BUYERS), errands, topic=self._name, accounts=self.accounts)

    def _close(self, client: Client) -> None:
        close_orders(
            client,
            self._name,
            accounts=self.accounts,
            closing=self._closing,
            lease_seconds=self._settings.lease_seconds,
            same_clock=self._settings.same_clock,
        )

    def _connect(self, count: int) -> list[Client]:
        clients = [
            Client(
                self._settings.base_url,
                api_key=self._settings.api_key,
                stop=self._stop,
                patience_s=self._settings.patience_s,
            )
            for _ in range(count)
        ]
        self._clients += clients
        return clients

    def _elapsed_s(self) -> float:
        return (self._clock.monotonic_ms() - self._began_ms) / 1000
