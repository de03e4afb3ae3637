"""Connecting: the client that a command uses, from the options before it or the environment."""

from dataclasses import dataclass

import typer

from postdate.client import Client, Patience


@dataclass(frozen=True, slots=True)
class Options:
    """The options before the command."""

    url: str | None = None
    api_key: str | None = None
    #: How long a server that is away is waited for, s.
    patience_s: float = 5.0


def connect(context: typer.Context) -> Client:
    """A client; used in a `with` block."""
    options = context.ensure_object(Options)
    patience = Patience(total_s=options.patience_s)
    return Client(options.url, options.api_key, patience=patience)
