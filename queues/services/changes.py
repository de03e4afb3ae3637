"""Changes of one message before its first hand-over: cancel, restore, move, deliver now, release.

Each is decided by the store at one point, and each answer is the truth at that point. Here its
outcome becomes an answer or the problem that a client knows.
"""

from queues import wires
from queues.codes import Code
from queues.moments import format_moment
from queues.problems import Problem
from queues.store import Decision, MessageView

_REFUSALS = {
    "not_found": Code.MESSAGE_NOT_FOUND,
    "too_late": Code.TOO_LATE,
    "cancelled": Code.MESSAGE_CANCELLED,
    "not_cancelled": Code.NOT_CANCELLED,
    "payload_gone": Code.PAYLOAD_GONE,
    "version_mismatch": Code.VERSION_MISMATCH,
    "not_parked": Code.NOT_PARKED,
}


def cancel_message(
    *, message_id: str, by: str, reason: str | None = None, expected_version: int | None = None
) -> Decision:
    """Cancel it: `cancelled` or `already_cancelled`.

    Raises `too_late`, `message_not_found`, `version_mismatch`.
    """
    store = wires.wiring().get_store()
    decision = store.cancel(message_id, by=by, reason=reason, expected_version=expected_version)
    if decision.outcome not in ("cancelled", "already_cancelled"):
        raise refusal(decision)
    return decision


def restore_message(*, message_id: str, by: str) -> MessageView:
    """Let a cancelled message wait again; raises `not_cancelled`, `payload_gone`."""
    return _done(wires.wiring().get_store().restore(message_id, by=by), "restored")


def move_message(
    *, message_id: str, due_ms: int, by: str, expected_version: int | None = None
) -> MessageView:
    """Give it another due time; raises `too_late`, `message_cancelled`, `version_mismatch`."""
    decision = (
        wires.wiring()
        .get_store()
        .move(message_id, due_ms, by=by, expected_version=expected_version)
    )
    return _done(decision, "moved")


def release_message(*, message_id: str, by: str) -> MessageView:
    """Let a parked message go on with the due time that it has; raises `not_parked`."""
    return _done(wires.wiring().get_store().release(message_id, by=by), "released")


def _done(decision: Decision, outcome: str) -> MessageView:
    if decision.outcome != outcome or decision.view is None:
        raise refusal(decision)
    return decision.view


def refusal(decision: Decision) -> Problem:
    """The problem that an outcome means to a client."""
    code = _REFUSALS[decision.outcome]
    view = decision.view
    if code is Code.TOO_LATE and view is not None and view.delivered_ms is not None:
        delivered_at = format_moment(view.delivered_ms)
        extra = {"delivered_at": delivered_at, "delivered_at_ms": view.delivered_ms}
        return Problem(code, f"It was delivered at {delivered_at}.", extra=extra)
    if code is Code.VERSION_MISMATCH and view is not None:
        return Problem(code, f"Its version is {view.version}.", extra={"version": view.version})
    return Problem(code)
