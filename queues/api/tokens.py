"""A page token says where a list goes on: opaque, signed, and valid only for the same list.

It is signed with the project's secret key, so every web process accepts it, after a restart too.
"""

from collections.abc import Sequence
from typing import Any

from django.core import signing

from queues.codes import Code
from queues.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from queues.problems import Problem

_SALT = "queues.api.page"


def make_token(listing: Sequence[Any], position: Sequence[Any]) -> str:
    """The token of a position in a listing, which is its name and filters."""
    return signing.dumps([list(listing), list(position)], salt=_SALT)


def read_token(listing: Sequence[Any], token: str | None) -> list[Any] | None:
    """The position; None for the first page. Raises `page_token_invalid`."""
    if not token:
        return None
    try:
        of_listing, position = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        raise _invalid("The token was not made here.") from None
    if of_listing != list(listing):
        raise _invalid("The token belongs to a list with other filters.")
    return list(position)


def page_size_of(text: str | None) -> int:
    """The size to use: what is no number is the default, too much is cut (AIP-158)."""
    try:
        size = int(text or "")
    except ValueError:
        return PAGE_SIZE_DEFAULT
    return min(size, PAGE_SIZE_MAX) if size > 0 else PAGE_SIZE_DEFAULT


def _invalid(detail: str) -> Problem:
    return Problem(Code.PAGE_TOKEN_INVALID, detail, pointer="page_token")
