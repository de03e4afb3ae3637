"""Writing: Python values as the API's fields: bytes, durations, moments.

A `timedelta` or a number of seconds is a delay; a `datetime` must know its zone, because one that
does not would be due at another time on another machine.
"""

import base64
import secrets
from datetime import datetime, timedelta
from typing import Any

import msgspec

from postdate.client.bignumbers import encode

#: `"90s"`, `"1h30m"`, `"PT90S"`; a `timedelta`; or seconds.
Duration = str | timedelta | float | int
#: A `datetime` with a zone, RFC 3339, or milliseconds since 1970.
Moment = datetime | str | int
#: Text, any JSON value, or bytes.
Body = Any


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to send; at most one of `delay`, `deliver_at` and `delay_level`."""

    #: Text, any JSON value, or bytes; a consumer gets back the same form.
    body: Body
    delay: Duration | None = None
    deliver_at: Moment | None = None
    delay_level: int | None = None
    tag: str | None = None
    #: Business keys, by which it is found again.
    keys: tuple[str, ...] | list[str] | None = None
    properties: dict[str, str] | None = None
    #: Which queue of the topic, or what chooses it.
    queue: int | None = None
    sharding_key: str | None = None
    #: A repeat with the same key within 24 h is stored once; None: the client makes one.
    idempotency_key: str | None = None


def message_fields(message: NewMessage) -> dict[str, Any]:
    """The message as the API takes it, without its idempotency key."""
    body = message.body
    fields: dict[str, Any] = {"body": body}
    if isinstance(body, bytes | bytearray | memoryview):
        fields = {"body": base64.b64encode(body).decode(), "encoding": "base64"}
    fields |= delay_fields(message.delay, message.deliver_at, message.delay_level)
    for name in ("tag", "properties", "queue", "sharding_key"):
        value = getattr(message, name)
        if value is not None:
            fields[name] = value
    if message.keys:
        fields["keys"] = list(message.keys)
    return fields


def delay_fields(
    delay: Duration | None, deliver_at: Moment | None, delay_level: int | None = None
) -> dict[str, Any]:
    """The fields of a delay; which of them may stand together is for the server to say."""
    fields: dict[str, Any] = {}
    if delay is not None:
        fields["delay"] = write_duration(delay)
    if deliver_at is not None:
        fields["deliver_at"] = write_moment(deliver_at)
    if delay_level is not None:
        fields["delay_level"] = delay_level
    return fields


def write_duration(duration: Duration) -> str:
    """The duration in words."""
    if isinstance(duration, str):
        return duration
    if not isinstance(duration, timedelta):
        duration = timedelta(seconds=duration)
    # Rounded up as the server rounds: nothing is due early.
    return f"{-(-duration // timedelta(milliseconds=1))}ms"


def write_moment(moment: Moment) -> str | int:
    """The moment as RFC 3339, or the milliseconds as they are."""
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        raise ValueError("a datetime without a zone is another moment on another machine")
    return moment.isoformat()


def read_bytes(body: Any, encoding: str | None) -> bytes:
    """A received body as bytes: what was sent as bytes, the UTF-8 of text, the JSON of a value."""
    if encoding == "base64":
        return base64.b64decode(body)
    if isinstance(body, str):
        return body.encode()
    return encode(body)


def new_idempotency_key() -> str:
    """A key that no other send has."""
    return secrets.token_hex(16)
