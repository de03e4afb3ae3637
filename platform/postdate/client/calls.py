"""A call is one request as a value: what to ask, how to read the answer, whether to ask again.

Both clients run the same calls; only how they wait differs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from postdate.client.bignumbers import decode, encode
from postdate.client.errors import UnexpectedAnswer

Answer = TypeVar("Answer")

_NO_CONTENT = 204


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Answer]):
    """One request."""

    method: str
    #: Below `/api/v1`, already quoted.
    path: str
    #: What a good answer is; None: it has no content.
    decoder: "msgspec.json.Decoder[Answer] | None"
    #: Encoded as JSON; None: no body.
    body: Any = None
    #: The query; what is None is left out.
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    #: May be sent again when nobody knows whether the first one arrived.
    repeatable: bool = True
    #: How much longer than others it may take: a long poll, s.
    wait_s: float = 0.0
    #: Statuses at or above 400 whose content is an answer all the same.
    also: frozenset[int] = frozenset()

    def content(self) -> bytes | None:
        """The body as bytes."""
        return None if self.body is None else encode(self.body)

    def read(self, response: httpx.Response) -> Answer:
        """The answer as its shape; raises `UnexpectedAnswer`."""
        if self.decoder is None or response.status_code == _NO_CONTENT:
            return None  # type: ignore[return-value]  # Answer is None then
        try:
            return decode(self.decoder, response.content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnexpectedAnswer(response.status_code, response.content, str(error)) from error
        except RecursionError as error:
            reason = "the JSON is nested too deeply for where it is read"
            raise UnexpectedAnswer(response.status_code, response.content, reason) from error


def path_of(*parts: str) -> str:
    """The parts as a path, each quoted: a name may hold anything and leads nowhere else."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def only_version(version: int | None) -> dict[str, str]:
    """The header by which a change is made of that version only; None: of any."""
    return {} if version is None else {"If-Match": f'"{version}"'}


def without_none(**fields: Any) -> dict[str, Any]:
    """The fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}
