"""The client of a Postdate server: synchronous, asynchronous, and consumers over both.

    from postdate.client import Client

    with Client("http://127.0.0.1:8000", api_key) as client:
        sent = client.send("orders", {"order": 7}, delay="30m")
        client.messages.cancel(sent.id)

It needs httpx and msgspec and nothing of the server.
"""

from postdate.client.addressing import NotConfigured
from postdate.client.aio.client import AsyncClient
from postdate.client.bignumbers import BigNumber
from postdate.client.consuming import AsyncConsumer, Consumer, DeadLetterNow, RetryLater
from postdate.client.errors import (
    Conflict,
    ConnectionFailed,
    ConsumerFailed,
    Forbidden,
    InvalidRequest,
    NotFound,
    OperationFailed,
    PostdateError,
    QuotaExceeded,
    Refused,
    TooLate,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
)
from postdate.client.repeating import Patience
from postdate.client.shapes.consuming import ReceivedMessage
from postdate.client.shapes.groups import (
    CustomPolicy,
    ExponentialPolicy,
    LevelsPolicy,
    Subscription,
)
from postdate.client.sync.client import Client
from postdate.client.writing import NewMessage

__all__ = [
    "AsyncClient",
    "AsyncConsumer",
    "BigNumber",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "Consumer",
    "ConsumerFailed",
    "CustomPolicy",
    "DeadLetterNow",
    "ExponentialPolicy",
    "Forbidden",
    "InvalidRequest",
    "LevelsPolicy",
    "NewMessage",
    "NotConfigured",
    "NotFound",
    "OperationFailed",
    "Patience",
    "PostdateError",
    "QuotaExceeded",
    "ReceivedMessage",
    "Refused",
    "RetryLater",
    "Subscription",
    "TooLate",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "UnexpectedAnswer",
]
