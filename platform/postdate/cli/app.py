"""The application: every command, and the options before it."""

from collections.abc import Callable
from typing import Annotated

import typer

from postdate.cli import benching, consuming, deadletters, looking, messages, verifying
from postdate.cli.connecting import Options
from postdate.client.addressing import DEFAULT_URL, KEY_VARIABLE, URL_VARIABLE

app = typer.Typer(
    name="postdate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Post a message now, dated for later: it arrives then, unless you change your mind.",
)

_SEND, _CONSUME, _LOOK = "Messages", "Consuming", "Looking"
_PANELS: dict[str, dict[str, Callable[..., None]]] = {
    _SEND: {
        "send": messages.send,
        "get": messages.get,
        "cancel": messages.cancel,
        "restore": messages.restore,
        "move": messages.move,
        "deliver-now": messages.deliver_now,
        "messages": looking.messages,
    },
    _CONSUME: {"receive": consuming.receive, "tail": consuming.tail, "groups": looking.groups},
    _LOOK: {
        "levels": looking.levels,
        "wheel": looking.wheel,
        "loops": looking.loops,
        "topics": looking.topics,
        "forecast": looking.forecast,
        "status": looking.status,
        "verify": verifying.verify,
        "bench": benching.bench,
    },
}
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(deadletters.app, name="dead-letters", rich_help_panel=_CONSUME)


@app.callback()
def options(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(envvar=URL_VARIABLE, help=f"The server; {DEFAULT_URL} if nothing is said."),
    ] = None,
    api_key: Annotated[
        str | None,
        typer.Option(envvar=KEY_VARIABLE, help="Better in the environment than here."),
    ] = None,
    patience: Annotated[
        float, typer.Option(help="Wait so long for a server that is away, s.")
    ] = 5.0,
) -> None:
    """Take the options before the command."""
    context.obj = Options(url, api_key, patience)


def main() -> None:
    """The program `postdate`."""
    app()
