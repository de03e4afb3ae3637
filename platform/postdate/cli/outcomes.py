"""Outcomes are how a command ends: an exit code for scripts, a sentence for people.

=====  ==================================================================
code   it means
=====  ==================================================================
0      done
1      refused for another reason than those below, or it failed
2      the command line was wrong, or the server's address
3      there is no such message, topic, group, …
4      the key is missing, wrong, or not allowed to
5      the server cannot be reached, or is none
6      too late, or the state of the thing does not allow it
7      not now: a quota, a full disk, a server that is going down
8      a part of Postdate is needed that is not installed
=====  ==================================================================
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from postdate.cli.output import visible
from postdate.client import (
    Conflict,
    ConnectionFailed,
    Forbidden,
    NotConfigured,
    NotFound,
    PostdateError,
    Refused,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
)
from postdate.client.addressing import AddressInvalid
from postdate.client.errors import Gone, VersionMismatch

REFUSED, WRONG_LINE, NO_SUCH, NOT_ALLOWED, UNREACHABLE = 1, 2, 3, 4, 5
CONFLICT, NOT_NOW, NOT_INSTALLED = 6, 7, 8
#: Ended by Ctrl-C or SIGTERM, as shells count it.
STOPPED = 130
_CODES: tuple[tuple[type[PostdateError], int], ...] = (
    (NotFound, NO_SUCH),
    (Unauthorized, NOT_ALLOWED),
    (Forbidden, NOT_ALLOWED),
    (AddressInvalid, WRONG_LINE),
    (NotConfigured, NOT_ALLOWED),
    (ConnectionFailed, UNREACHABLE),
    (UnexpectedAnswer, UNREACHABLE),
    (Conflict, CONFLICT),
    (Gone, CONFLICT),
    (VersionMismatch, CONFLICT),
    (TooManyRequests, NOT_NOW),
    (Unavailable, NOT_NOW),
)
_HINTS: dict[type[PostdateError], str] = {
    ConnectionFailed: "Is it running there? --url or POSTDATE_URL says where to look.",
    UnexpectedAnswer: "Is this the address of a Postdate server? --url or POSTDATE_URL sets it.",
    AddressInvalid: "--url or POSTDATE_URL sets the address.",
    NotConfigured: "The server printed its first key when it was set up (`make up`).",
    Unauthorized: "--api-key or POSTDATE_API_KEY sets the key.",
}

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

errors = Console(stderr=True)


def exit_code_of(error: PostdateError) -> int:
    """The exit code that an error stands for."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), REFUSED)


def say(sentence: str) -> None:
    """Say what is the matter with one of many things."""
    errors.print(f"[red]{escape(visible(sentence))}[/red]", highlight=False)


def fail(sentence: str, *, code: int, hint: str | None = None) -> typer.Exit:
    """Say what is the matter; the caller raises what comes back."""
    say(sentence)
    if hint is not None:
        errors.print(escape(hint), highlight=False)
    return typer.Exit(code)


def command(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A command whose errors end it with their code and a sentence."""

    @functools.wraps(function)
    def run(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except PostdateError as error:
            hint = next((text for kind, text in _HINTS.items() if isinstance(error, kind)), None)
            raise fail(sentence_of(error), code=exit_code_of(error), hint=hint) from None
        except ValueError as error:
            raise fail(str(error), code=WRONG_LINE) from None
        except KeyboardInterrupt:
            raise typer.Exit(STOPPED) from None

    return run


def sentence_of(error: PostdateError) -> str:
    """What people are told of an error."""
    if not isinstance(error, Refused):
        return str(error)
    places = [place for one in error.errors if (place := one.pointer or one.parameter)]
    where = f" (at {', '.join(places)})" if places else ""
    return f"{error.detail}{where} [{error.code}]"
