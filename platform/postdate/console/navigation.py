"""The way through the console: its pages by section, and who sees which."""

from dataclasses import dataclass

from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Stop:
    """One page in the menu."""

    #: What people read.
    label: str
    #: The name of its address.
    name: str
    #: Its drawing in `icons.svg`.
    icon: str
    #: Django's permission to see it.
    permission: str
    #: Names of other addresses that belong to it.
    also: tuple[str, ...] = ()


_LOOK = "queues.view_message"
_PERSON = ("admin:auth_user_add", "admin:auth_user_change", "admin:auth_user_changelist")

SECTIONS: tuple[tuple[str, tuple[Stop, ...]], ...] = (
    (
        "Watch",
        (
            Stop("Overview", "overview", "overview", _LOOK),
            Stop("Delay levels", "levels", "levels", _LOOK),
            Stop("Timer wheel", "wheel", "wheel", _LOOK),
            Stop("Loops", "loops", "loops", _LOOK),
            Stop("Forecast", "forecast", "forecast", _LOOK),
        ),
    ),
    (
        "Messages",
        (
            Stop("Messages", "messages", "message", _LOOK, ("message", "send")),
            Stop("Parked", "parked", "parked", _LOOK),
            Stop("Dead letters", "dead", "dead", "queues.view_group", ("letters", "letter")),
        ),
    ),
    (
        "Declared",
        (
            Stop("Topics", "topics", "topic", "queues.view_topic", ("topic", "topic-add")),
            Stop("Groups", "groups", "group", "queues.view_group", ("group", "group-add")),
        ),
    ),
    (
        "Work",
        (
            Stop("Operations", "operations", "operation", "queues.view_operation", ("operation",)),
            Stop(
                "Reports",
                "reports-page",
                "report",
                "analytics.view_reportrun",
                ("report-page", "schedules", "schedule-add", "schedule-change"),
            ),
        ),
    ),
    (
        "Access",
        (
            Stop("API keys", "keys", "key", "queues.view_apikey", ("key-add",)),
            Stop("Audit log", "audit", "audit", "queues.view_auditentry"),
            Stop("People", "people", "people", "auth.view_user", _PERSON),
            Stop("System", "system", "system", _LOOK),
        ),
    ),
)


def sections_for(request: HttpRequest) -> list[dict[str, object]]:
    """The menu as this person sees it, with the page that is open."""
    match = request.resolver_match
    here = match.view_name if match else ""
    shown: list[dict[str, object]] = []
    for title, stops in SECTIONS:
        items = [
            {"stop": stop, "here": here in (stop.name, *stop.also)}
            for stop in stops
            if request.user.has_perm(stop.permission)
        ]
        if items:
            shown.append({"title": title, "stops": items})
    return shown
