"""The pages of work and of its traces: operations, the audit log, the system."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from postdate.config import Config, variable_names
from postdate.console.actions import act, confirm
from postdate.console.pages import Context, acting, page
from postdate.console.tags import duration, size
from queues import wires
from queues.problems import Problem
from queues.selectors import audit
from queues.selectors.health import readiness
from queues.selectors.operations import get_operation, is_finished, list_operations
from queues.services import operations
from queues.store.limits import DUE_MS_MAX

_OPERATIONS_SHOWN = 100
_ENTRIES_SHOWN = 100
#: What is below, and ends in `_ms`, is a length of time.
_LEAST_MOMENT_MS = 1_000_000_000_000
#: Settings whose values are nobody's business.
_SECRET_WORDS = ("key", "password", "url")


@page("console/operations.html", permission="queues.view_operation")
def operations_page(request: HttpRequest) -> Context:
    """Long work and how far it is."""
    before = request.GET.get("before") or None
    rows = list_operations(before=before, limit=_OPERATIONS_SHOWN + 1)
    return {
        "title": "Operations",
        "lead": "Long work runs in the background; it goes on when you leave, and when a process "
        "dies another takes it up.",
        "rows": [_told(row) for row in rows[:_OPERATIONS_SHOWN]],
        "before": rows[_OPERATIONS_SHOWN - 1].id if len(rows) > _OPERATIONS_SHOWN else "",
    }


@page("console/operation.html", permission="queues.view_operation")
def operation_page(request: HttpRequest, operation_id: str) -> Context:
    """One operation."""
    told = _told(get_operation(operation_id))
    may = request.user.has_perm("queues.change_operation")
    return {
        "title": told["row"].kind,
        "trail": [("Operations", reverse("operations"))],
        "crumb": operation_id[:8] + "…",
        "told": told,
        "may_abort": may and not told["finished"] and not told["row"].abort_asked,
        "may_undo": may
        and told["finished"]
        and operations.is_undoable(told["row"])
        and not told["row"].undone_by,
    }


def _told(row: Any) -> dict[str, Any]:
    def ms(at: Any) -> int | None:
        return None if at is None else round(at.timestamp() * 1000)

    return {
        "row": row,
        "finished": is_finished(row),
        "state": "aborting" if row.abort_asked and not is_finished(row) else row.state,
        "created_ms": ms(row.created_at),
        "touched_ms": ms(row.touched_at),
        "finished_ms": ms(row.finished_at),
        "result": list(_flat(row.result)),
        "request": list(dict.fromkeys(_flat(row.request))),
        "error": list(_flat(row.error)),
    }


#: Of a request: what its operation needs and nobody asked for.
_INNER = {"begun_ms", "boundary", "ends", "journal_from", "patterns", "state", "timer_from"}


def _flat(value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Names in words, values, and whether each is a moment; what is not said is left out."""
    for name, one in _pairs(value):
        if one in (None, False, "", [], {}) or name in _INNER:
            continue
        if isinstance(one, dict):
            yield from _flat(one)
        elif name.endswith("_ms") and isinstance(one, int) and one > _LEAST_MOMENT_MS:
            if one < DUE_MS_MAX:
                yield name.removesuffix("_ms").replace("_", " "), one, True
        elif one is True:
            yield name.replace("_", " "), "yes", False
        else:
            told = ", ".join(map(str, one)) if isinstance(one, list) else one
            yield name.replace("_", " "), told, False


def _pairs(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


@page("console/confirm.html", permission="queues.change_operation")
def operation_abort_page(request: HttpRequest, operation_id: str) -> Context | HttpResponseBase:
    """Stop an operation."""
    row = get_operation(operation_id)
    if request.method == "POST":
        act(
            request,
            lambda: operations.abort_operation(operation_id=operation_id, by=acting(request)),
            done="It stops at its next step; what it did stays done.",
        )
        return redirect("operation", operation_id)
    return confirm(
        title="Abort the operation?",
        sentence="It stops at its next step. What it did until then stays done; some kinds can be "
        "undone afterwards.",
        button="Abort it",
        back=reverse("operation", args=[operation_id]),
        trail=[("Operations", reverse("operations"))],
        danger=True,
        facts=[("Kind", row.kind), ("Done", f"{row.done:,}")],
    )


@page("console/confirm.html", permission="queues.change_operation")
def operation_undo_page(request: HttpRequest, operation_id: str) -> Context | HttpResponseBase:
    """Take an operation back."""
    row = get_operation(operation_id)
    if request.method == "POST":
        try:
            now_ms = wires.wiring().get_clock().now_ms()
            undoing = operations.undo_operation(
                operation_id=operation_id, by=acting(request), now_ms=now_ms
            )
        except Problem as problem:
            messages.error(request, problem.detail)
            return redirect("operation", operation_id)
        return redirect("operation", undoing.id)
    return confirm(
        title="Undo the operation?",
        sentence="What it did is taken back, message by message, where that is still possible.",
        button="Undo it",
        back=reverse("operation", args=[operation_id]),
        trail=[("Operations", reverse("operations"))],
        facts=[("Kind", row.kind), ("Done", f"{row.done:,}")],
    )


def _ms(at: Any) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)


# --- audit log, system


@page("console/audit.html", permission="queues.view_auditentry")
def audit_page(request: HttpRequest) -> Context:
    """Who changed what, newest first."""
    before = request.GET.get("before", "")
    wanted = {name: request.GET.get(name, "").strip() for name in ("by", "action", "subject")}
    rows = audit.search_entries(
        before=int(before) if before.isdecimal() else None, limit=_ENTRIES_SHOWN + 1, **wanted
    )
    shown = rows[:_ENTRIES_SHOWN]
    return {
        "title": "Audit log",
        "lead": "Every change of topics, groups, keys and operations, and everything that a person "
        "did to messages here. What programs do to single messages is in each message's history.",
        "rows": [
            {
                "entry": row,
                "at_ms": _ms(row.at),
                "detail": _pairs(row.detail),
                "changes": _changes(row.before or {}, row.after or {}),
            }
            for row in shown
        ],
        "wanted": wanted,
        "narrowed": any(wanted.values()),
        "before": shown[-1].pk if len(rows) > _ENTRIES_SHOWN else "",
    }


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """What was, and what is, name by name."""
    names = dict.fromkeys([*before, *after])
    return [(name, before.get(name, ""), after.get(name, "")) for name in names]


@page("console/system.html", permission="queues.view_message")
def system_page(request: HttpRequest) -> Context:
    """Disk, segments, health, and the settings in force."""
    store = wires.wiring().get_store()
    config: Config = settings.POSTDATE
    names = variable_names()
    may_see = request.user.has_perm("queues.view_apikey")
    shown = [
        (names[field], _setting(field, getattr(config, field)), value_is_default(config, field))
        for field in Config.model_fields
    ]
    return {
        "title": "System",
        "health": store.health(),
        "counters": store.counters(),
        "checks": readiness(),
        "sizes": store.sizes,
        "segments": -(-store.health()["log_bytes"] // store.sizes.segment_bytes),
        "store_dir": config.store_dir if may_see else None,
        "config": config,
        "settings": shown if may_see else [],
        "committed": store.committed,
        "flushed": store.flushed,
        "last_store_ms": store.last_store_ms or None,
    }


def value_is_default(config: Config, field: str) -> bool:
    """Whether nobody set it."""
    return bool(getattr(config, field) == Config.model_fields[field].default)


def _setting(field: str, value: Any) -> str:
    if value is None:
        return "not set"
    if any(word in field for word in _SECRET_WORDS) and field != "public_url":
        return "set, not shown"
    if isinstance(value, bool):
        return "on" if value else "off"
    if field.endswith("_ms"):
        return str(duration(value))
    if field.endswith("_bytes"):
        return str(size(value))
    return str(value)
