"""Sends: each with an idempotency key, so that a repeat is stored once."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from postdate.client.aio.transport import AsyncTransport
from postdate.client.bignumbers import encode
from postdate.client.calls import Call, path_of
from postdate.client.shapes.sending import Sent, SentBatch, SentItem
from postdate.client.writing import NewMessage, message_fields, new_idempotency_key

_sent = msgspec.json.Decoder(Sent)
_batch = msgspec.json.Decoder(SentBatch)

BATCH_MESSAGES_MAX = 1000
#: The server takes 16 MiB; the rest is room for what is around the messages.
BATCH_BYTES_MAX = 12 << 20


class AsyncSending:
    """The sends of a client."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def send(self, topic: str, message: NewMessage) -> Sent:
        """Send one; raises what the server has against it."""
        call = Call(
            method="POST",
            path=path_of("topics", topic, "messages"),
            decoder=_sent,
            body=message_fields(message),
            headers={"Idempotency-Key": message.idempotency_key or new_idempotency_key()},
        )
        return await self._transport.run(call)

    async def send_many(self, topic: str, messages: Sequence[NewMessage]) -> list[SentItem]:
        """Send them in batches; one result each, in order."""
        results: list[SentItem] = []
        for batch in _batches(messages):
            results += await self._send_batch(topic, batch)
        return results

    async def _send_batch(self, topic: str, batch: Sequence[NewMessage]) -> list[SentItem]:
        call = Call(
            method="POST",
            path=path_of("topics", topic, "messages", "batch"),
            decoder=_batch,
            body={"messages": [_item(message) for message in batch]},
        )
        return (await self._transport.run(call)).results


def _item(message: NewMessage) -> dict[str, Any]:
    key = message.idempotency_key or new_idempotency_key()
    return {**message_fields(message), "idempotency_key": key}


def _batches(messages: Sequence[NewMessage]) -> Iterator[Sequence[NewMessage]]:
    """The messages in runs that one request can hold."""
    first, size_bytes = 0, 0
    for index, message in enumerate(messages):
        message_bytes = _size_bytes(message)
        full = index - first == BATCH_MESSAGES_MAX or size_bytes + message_bytes > BATCH_BYTES_MAX
        if full and index > first:
            yield messages[first:index]
            first, size_bytes = index, 0
        size_bytes += message_bytes
    if first < len(messages):
        yield messages[first:]


def _size_bytes(message: NewMessage) -> int:
    """About what the message takes in a request."""
    body = message.body
    if isinstance(body, bytes | bytearray | memoryview):
        return len(body) * 4 // 3 + 512
    if isinstance(body, str):
        # A character takes up to six bytes in JSON; ASCII, the usual case, takes one.
        return (len(body) if body.isascii() else 6 * len(body)) + 512
    return len(encode(body)) + 512
