"""An endpoint declares one method of one address: who may call it, what it takes, what it gives.

The declaration is used twice: the view reads scope and shapes from it for each request, and the
OpenAPI document is made of it. So the two cannot differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from django.http import HttpRequest, HttpResponse

from queues.access import Caller
from queues.api.codec import decoder_of
from queues.codes import Code
from queues.store.allowances import Standing

Handler = TypeVar("Handler", bound=Callable[..., HttpResponse])

SEND, CONSUME, INSPECT, MANAGE = "send", "consume", "inspect", "manage"


class NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of an address that takes no parameters."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one address."""

    #: What it does, in a few words.
    summary: str
    #: A key with any one of these scopes may call it; None: no key is needed.
    scopes: tuple[str, ...] | None
    #: The shape of the request's body; None: it takes none.
    takes: type[msgspec.Struct] | None
    #: The shape of the query; None: it takes no parameters.
    query: type[msgspec.Struct] | None
    #: Status to shape of the body answered with it; None: no body.
    gives: Mapping[int, Any]
    #: How it may refuse, beside what every endpoint may.
    codes: tuple[Code, ...]
    #: Headers that it understands: name to what it is for.
    headers: Mapping[str, str]
    #: Reads the body; None where there is none.
    decoder: msgspec.json.Decoder[Any] | None
    #: An absent body is read as `{}`.
    body_optional: bool
    #: Media types in which a 200 may come besides JSON.
    forms: tuple[str, ...] = ()


@dataclass(slots=True)
class Call:
    """One request, read and let in."""

    request: HttpRequest
    caller: Caller
    #: When it was read, ms since the epoch.
    now_ms: int
    #: The body in its shape.
    body: Any = None
    #: The query in its shape.
    query: Any = None
    #: How the key's limits stand, for the answer's headers.
    standings: list[Standing] = field(default_factory=list)


def endpoint(
    summary: str,
    *,
    scopes: tuple[str, ...] | None,
    gives: Mapping[int, Any],
    takes: type[msgspec.Struct] | None = None,
    query: type[msgspec.Struct] | None = None,
    codes: tuple[Code, ...] = (),
    headers: Mapping[str, str] | None = None,
    body_optional: bool = False,
    forms: tuple[str, ...] = (),
) -> Callable[[Handler], Handler]:
    """Declare the method that is decorated."""
    declared = Endpoint(
        summary=summary,
        scopes=scopes,
        takes=takes,
        query=query,
        gives=gives,
        codes=codes,
        headers=headers or {},
        decoder=None if takes is None else decoder_of(takes),
        body_optional=body_optional,
        forms=forms,
    )

    def declare(handler: Handler) -> Handler:
        handler.endpoint = declared  # type: ignore[attr-defined]
        return handler

    return declare
