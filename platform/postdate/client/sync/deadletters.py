"""What a group failed at: retries that wait, and dead letters."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from postdate.client.calls import Call, path_of, without_none
from postdate.client.shapes.consuming import (
    DeadLetter,
    DeadLetterPage,
    Outcome,
    Purged,
    ReasonPage,
    Redrive,
    Retry,
    RetryPage,
)
from postdate.client.sync.transport import Transport
from postdate.client.writing import Duration, Moment, delay_fields, write_moment

_retries = msgspec.json.Decoder(RetryPage)
_retry = msgspec.json.Decoder(Retry)
_outcome = msgspec.json.Decoder(Outcome)
_letters = msgspec.json.Decoder(DeadLetterPage)
_letter = msgspec.json.Decoder(DeadLetter)
_redrive = msgspec.json.Decoder(Redrive)
_reasons = msgspec.json.Decoder(ReasonPage)
_purged = msgspec.json.Decoder(Purged)


class Retries:
    """A group's messages that wait for another attempt."""

    def __init__(self, transport: Transport, group: str) -> None:
        self._transport = transport
        self._group = group

    def list(self, *, page_size: int | None = None, page_token: str | None = None) -> RetryPage:
        """A page of them, by the time of the next attempt."""
        return self._transport.run(
            Call(
                method="GET",
                path=path_of("groups", self._group, "retries"),
                decoder=_retries,
                query={"page_size": page_size, "page_token": page_token or None},
            )
        )

    def get(self, message_id: str) -> Retry:
        """Everything that is known of it."""
        path = path_of("groups", self._group, "retries", message_id)
        return self._transport.run(Call(method="GET", path=path, decoder=_retry))

    def cancel(self, message_id: str) -> Outcome:
        """This group never receives it again."""
        path = path_of("groups", self._group, "retries", message_id)
        return self._transport.run(Call(method="DELETE", path=path, decoder=_outcome))

    def move(
        self,
        message_id: str,
        *,
        delay: Duration | None = None,
        deliver_at: Moment | None = None,
    ) -> Retry:
        """Make the next attempt at another time."""
        path = path_of("groups", self._group, "retries", message_id)
        body = delay_fields(delay, deliver_at)
        call = Call(method="PATCH", path=path, decoder=_retry, body=body)
        return self._transport.run(call)

    def deliver_now(self, message_id: str) -> Retry:
        """Make the next attempt now."""
        path = path_of("groups", self._group, "retries", message_id, "deliver-now")
        return self._transport.run(Call(method="POST", path=path, decoder=_retry, body={}))


class DeadLetters:
    """A group's messages that it gave up."""

    def __init__(self, transport: Transport, group: str) -> None:
        self._transport = transport
        self._group = group

    def list(
        self,
        *,
        topic: str | None = None,
        key: str | None = None,
        reason: str | None = None,
        died_after: Moment | None = None,
        died_before: Moment | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> DeadLetterPage:
        """A page of them."""
        query = {
            "topic": topic,
            "key": key,
            "reason": reason,
            "died_after": None if died_after is None else write_moment(died_after),
            "died_before": None if died_before is None else write_moment(died_before),
            "page_size": page_size,
            "page_token": page_token or None,
        }
        path = path_of("groups", self._group, "dead-letters")
        return self._transport.run(Call(method="GET", path=path, decoder=_letters, query=query))

    def iterate(self, **filters: Any) -> Iterator[DeadLetter]:
        """Every dead letter that `list` finds with these filters, page by page."""
        token = ""
        while True:
            page = self.list(**filters, page_token=token)
            for letter in page.items:
                yield letter
            token = page.next_page_token
            if not token:
                return

    def export(
        self,
        format_: Literal["csv", "ndjson"],
        *,
        topic: str | None = None,
        key: str | None = None,
        reason: str | None = None,
    ) -> str:
        """All of them with bodies and properties, as a text of that format."""
        call: Call[None] = Call(
            method="GET",
            path=path_of("groups", self._group, "dead-letters"),
            decoder=None,
            query={"format": format_, "topic": topic, "key": key, "reason": reason},
        )
        return self._transport.text(call)

    def get(self, message_id: str) -> DeadLetter:
        """Everything that is known of it."""
        path = path_of("groups", self._group, "dead-letters", message_id)
        return self._transport.run(Call(method="GET", path=path, decoder=_letter))

    def redrive(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter_: dict[str, Any] | None = None,
        everything: bool = False,
        again: bool = False,
        dry_run: bool = False,
        messages_per_second: float | None = None,
        stop_after_failures: int | None = None,
    ) -> Redrive:
        """Have the group try them again: by id, by filter, or all of them.

        The answer holds a count (a dry run), results, or an operation's `id` where there are many.
        """
        body = without_none(
            ids=None if ids is None else [*ids],
            filter=filter_,
            all=everything or None,
            again=again or None,
            dry_run=dry_run or None,
            messages_per_second=messages_per_second,
            stop_after_failures=stop_after_failures,
        )
        path = path_of("groups", self._group, "dead-letters", "redrive")
        call = Call(method="POST", path=path, decoder=_redrive, body=body)
        return self._transport.run(call)

    def reasons(
        self,
        *,
        topic: str | None = None,
        key: str | None = None,
        died_after: Moment | None = None,
        died_before: Moment | None = None,
    ) -> ReasonPage:
        """What they died of, the most frequent first."""
        query = {
            "topic": topic,
            "key": key,
            "died_after": None if died_after is None else write_moment(died_after),
            "died_before": None if died_before is None else write_moment(died_before),
        }
        path = path_of("groups", self._group, "dead-letters", "reasons")
        call = Call(method="GET", path=path, decoder=_reasons, query=query)
        return self._transport.run(call)

    def discard(self, message_id: str, *, reason: str | None = None) -> Outcome:
        """Give it up for good."""
        path = path_of("groups", self._group, "dead-letters", message_id)
        query = {"reason": reason}
        call = Call(method="DELETE", path=path, decoder=_outcome, query=query)
        return self._transport.run(call)

    def purge(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter_: dict[str, Any] | None = None,
        everything: bool = False,
    ) -> Purged:
        """Give many up for good: by id, by filter, or all of them."""
        body = without_none(
            ids=None if ids is None else [*ids], filter=filter_, all=everything or None
        )
        path = path_of("groups", self._group, "dead-letters", "purge")
        call = Call(method="POST", path=path, decoder=_purged, body=body)
        return self._transport.run(call)
