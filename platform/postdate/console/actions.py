"""Actions: what a person changes, confirmed before and written down after.

A GET of an action's address shows what will happen; the POST from there does it. The services
decide, as for the API, and what they refuse is said in their words.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect

from postdate.console.pages import Context, acting
from queues.problems import Problem
from queues.services.audit import note_action


class Begun(Protocol):
    """Long work that an action began."""

    id: str


Trail = Sequence[tuple[str, str]]


def confirm(
    *,
    title: str,
    sentence: str,
    button: str,
    back: str,
    trail: Trail = (),
    form: forms.Form | None = None,
    danger: bool = False,
    facts: Sequence[tuple[str, Any]] = (),
    **more: Any,
) -> Context:
    """The page that asks before."""
    return {
        "title": title,
        "sentence": sentence,
        "button": button,
        "back": back,
        "trail": trail,
        "form": form,
        "danger": danger,
        "facts": facts,
        **more,
    }


def act(
    request: HttpRequest,
    work: Callable[[], object],
    *,
    done: str,
    action: str = "",
    subject: str = "",
    detail: Mapping[str, Any] | None = None,
) -> bool:
    """Do it, say so, and leave an audit entry unless the service leaves its own (no `action`)."""
    try:
        work()
    except Problem as problem:
        messages.error(request, problem.detail)
        return False
    if action:
        note_action(by=acting(request), action=action, subject=subject, detail=detail)
    messages.success(request, done)
    return True


def leave(request: HttpRequest, fallback: str, *arguments: Any) -> HttpResponseRedirect:
    """Back to where the person came from, on this server, or to a page."""
    came_from = request.POST.get("next", "")
    if came_from.startswith("/admin/") and "//" not in came_from and "\\" not in came_from:
        return HttpResponseRedirect(came_from)
    return redirect(fallback, *arguments)


def follow(begun: Begun | None, fallback: str, *arguments: Any) -> HttpResponseRedirect:
    """To the operation that an action began, or to a page where it was done at once."""
    if begun is not None:
        return redirect("operation", begun.id)
    return redirect(fallback, *arguments)
