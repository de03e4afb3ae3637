"""Messages as they are looked at: what the store knows of one, told for clients."""

from queues import wires
from queues.access import Caller
from queues.codes import Code
from queues.problems import Problem
from queues.store import MessageView
from queues.store.properties import PD_DUE
from queues.store.record import Record


def get_message(message_id: str, *, caller: Caller | None = None) -> MessageView:
    """The message; raises `message_not_found`, also for one outside the caller's patterns."""
    view = wires.wiring().get_store().find(message_id) if is_message_id(message_id) else None
    if view is None or (caller is not None and not caller.topics.allow(view.topic)):
        raise Problem(Code.MESSAGE_NOT_FOUND, f"There is no message {message_id[:64]!r}.")
    return view


def require_visible(message_id: str, *, caller: Caller) -> None:
    """Raise `message_not_found` for what the caller may not see; the message may still be none."""
    if not is_message_id(message_id) or not caller.topics.takes_all:
        get_message(message_id, caller=caller)


def is_message_id(text: str) -> bool:
    """Whether it can be an id: 32 lower-case hex digits."""
    return len(text) == len("0" * 32) and not set(text) - _HEX_DIGITS


def lateness_ms(view: MessageView) -> int | None:
    """How late the first hand-over was; None before it, 0 by definition for immediate messages."""
    if view.kind == "I":
        return 0
    return None if view.delivered_ms is None else view.delivered_ms - view.due_ms


_HEX_DIGITS = frozenset("0123456789abcdef")


def promised_ms(record: Record) -> int | None:
    """When a delivered record was due; None where a broker's record does not say."""
    due = record.properties.get(PD_DUE, "")
    return int(due) if due.isdecimal() else None
