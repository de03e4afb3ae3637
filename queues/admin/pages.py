"""What the pages of the console share: who acts, and problems as messages instead of pages."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest

from queues.problems import Problem


def acting(request: HttpRequest) -> str:
    """How the audit log names the person."""
    return f"user:{request.user.get_username()}"


def attempt(request: HttpRequest, work: Callable[[], Any], done: str) -> bool:
    """Do it and say so, or say why not; whether it was done."""
    try:
        work()
    except Problem as problem:
        messages.error(request, problem.detail)
        return False
    messages.success(request, done)
    return True


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic in Django
    """Rows that are looked at and never edited here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        del request
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        del request, obj
        return False
