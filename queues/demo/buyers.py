"""Buyers post the orders of a plan and pay some: a payment is a cancel at its planned moment.

Each buyer is a thread that first pays what is due and posts the next parcel when nothing is, so
that on a slow machine the posting takes longer and the payments stay on time. A payment answered
`too_late` is written down: that order must then reach the consumer group.
"""

import heapq
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from queues.demo.accounts import Accounts
from queues.demo.client import Answer, Client, UnexpectedAnswerError
from queues.demo.orders import Order, Parcel
from queues.store.clock import Clock

#: A buyer looks up from its wait at least this often, so that a stopped run ends.
WAIT_S_MAX = 0.2


class Errands:
    """What is still to be done: parcels to post, and payments, each at its moment."""

    def __init__(self, parcels: Iterable[Parcel], *, clock: Clock, stop: threading.Event) -> None:
        self._parcels = iter(parcels)
        self._clock = clock
        self._stop = stop
        self._changed = threading.Condition()
        self._payments: list[tuple[int, str]] = []
        self._parcels_under_way = 0

    def next(self) -> Parcel | str | None:
        """A message id to pay now, else a parcel to post; None when all is done or the run stops.

        Waits while there is nothing to post and no payment is due yet. Each parcel that was given
        out is to be followed by `posted`.
        """
        with self._changed:
            while not self._stop.is_set():
                wait_s = self._until_payment_s()
                if wait_s <= 0:
                    return heapq.heappop(self._payments)[1]
                parcel = next(self._parcels, None)
                if parcel is not None:
                    self._parcels_under_way += 1
                    return parcel
                if not self._payments and not self._parcels_under_way:
                    return None
                self._changed.wait(wait_s)
            return None

    def posted(self, payments: Iterable[tuple[int, str]]) -> None:
        """A parcel was posted: these payments (epoch milliseconds, message id) are to follow."""
        with self._changed:
            for payment in payments:
                heapq.heappush(self._payments, payment)
            self._parcels_under_way -= 1
            self._changed.notify_all()

    def _until_payment_s(self) -> float:
        if not self._payments:
            return WAIT_S_MAX
        return min((self._payments[0][0] - self._clock.now_ms()) / 1000, WAIT_S_MAX)


def message_of(order: Order, *, run_name: str) -> dict[str, Any]:
    """The JSON of one post."""
    delay = {"delay_ms": order.delay_ms} if order.level is None else {"delay_level": order.level}
    return {
        "body": {"order": order.number},
        "tag": "order-timeout",
        "keys": [f"{run_name}-{order.number}"],
        **delay,
    }


def post_parcel(client: Client, topic: str, parcel: Parcel) -> list[tuple[Order, dict[str, Any]]]:
    """Post one parcel; every order with the server's answer for it.

    Raises UnexpectedAnswerError when an order is not accepted.
    """
    path = f"/api/v1/topics/{topic}/messages"
    messages = [message_of(order, run_name=topic) for order in parcel.orders]
    if len(messages) == 1:
        answer = client.expect("POST", path, messages[0], statuses=(HTTPStatus.CREATED,))
        return [(parcel.orders[0], answer.body)]
    answer = client.expect("POST", f"{path}/batch", {"messages": messages})
    results = answer.body["results"]
    for result in results:
        if result["status"] != HTTPStatus.CREATED:
            raise UnexpectedAnswerError("POST", f"{path}/batch", Answer(result["status"], result))
    return list(zip(parcel.orders, results, strict=True))


def cancel_message(client: Client, message_id: str) -> bool:
    """Cancel a message: True for cancelled, False for too late.

    Raises UnexpectedAnswerError for every other answer.
    """
    path = f"/api/v1/messages/{message_id}"
    answer = client.expect("DELETE", path, statuses=(200, 409))
    if answer.status == HTTPStatus.OK and answer.body["outcome"] in {
        "cancelled",
        "already_cancelled",
    }:
        return True
    if answer.status == HTTPStatus.CONFLICT and answer.body["code"] == "too_late":
        return False
    raise UnexpectedAnswerError("DELETE", path, answer)


def buy(clients: Sequence[Client], errands: Errands, *, topic: str, accounts: Accounts) -> None:
    """Run all errands, one thread a connection; the first error of any is raised."""

    def run_errands(client: Client) -> None:
        while (errand := errands.next()) is not None:
            if isinstance(errand, Parcel):
                _post(client, errand, errands, topic=topic, accounts=accounts)
            elif cancel_message(client, errand):
                accounts.cancel(errand)
            else:
                accounts.refuse_cancel(errand)

    with ThreadPoolExecutor(max_workers=len(clients)) as threads:
        for finished in [threads.submit(run_errands, client) for client in clients]:
            finished.result()


def _post(
    client: Client, parcel: Parcel, errands: Errands, *, topic: str, accounts: Accounts
) -> None:
    payments: list[tuple[int, str]] = []
    try:
        for order, answer in post_parcel(client, topic, parcel):
            accounts.accept(answer["id"], due_ms=answer["due_at_ms"])
            if order.paid_before_ms is not None:
                payments.append((answer["due_at_ms"] - order.paid_before_ms, answer["id"]))
    finally:
        errands.posted(payments)
