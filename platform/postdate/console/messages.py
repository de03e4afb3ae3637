"""The pages of messages: search, one message, what is parked, and what a person does to one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from postdate.console.actions import act, confirm, leave
from postdate.console.explaining import explain
from postdate.console.forms import SendForm, WhenForm
from postdate.console.pages import Context, acting, page, posted
from postdate.console.searching import Search
from queues import wires
from queues.api.bodyform import show_body
from queues.api.telling import user_properties
from queues.problems import Problem
from queues.selectors.control import cache
from queues.selectors.messages import get_message, is_message_id, lateness_ms
from queues.selectors.standings import GroupStanding, events_of, standings_of
from queues.services import changes
from queues.services.bodies import BYTES, JSON, TEXT, bytes_of_base64
from queues.services.delays import Due
from queues.services.sending import compose, place
from queues.services.topics import made, topic_for_send
from queues.store import MessageView
from queues.store.record import Record

_LOOK = "queues.view_message"
_CHANGE = "queues.change_message"
_BODY = "queues.view_body"
#: Of a longer body this much is shown.
BODY_SHOWN_CHARACTERS = 64 * 1024
_PARKED_SHOWN = 200
_TOPICS_OFFERED = 1_000


@page("console/messages.html", permission=_LOOK)
def messages_page(request: HttpRequest) -> Context | HttpResponseBase:
    """What waits, what was delivered, what carries a key."""
    search = Search(request.GET)
    if is_message_id(search.text):
        if wires.wiring().get_store().find(search.text) is not None:
            return redirect("message", search.text)
        search.problem = f"There is no message with the id {search.text}."
    found = search.run(acting(request))
    query = {name: value for name, value in request.GET.items() if value and name != "page"}
    following = f"?{urlencode({**query, 'page': found.following})}" if found.following else ""
    return {
        "title": "Messages",
        "search": search,
        "found": found,
        "following": following,
        "is_later_page": bool(request.GET.get("page")),
        "topics": topic_names(),
        "query": urlencode(query),
    }


@page("console/message.html", permission=_LOOK)
def message_page(request: HttpRequest, message_id: str) -> Context:
    """Everything that is known of one message."""
    view = get_message(message_id)
    may_see_body = request.user.has_perm(_BODY)
    now_ms = wires.wiring().get_clock().now_ms()
    return {
        "title": "Message",
        "crumb": view.id[:8] + "…",
        "trail": [("Messages", reverse("messages"))],
        "view": view,
        "why": explain(view, now_ms),
        "late_ms": lateness_ms(view),
        "may_see_body": may_see_body,
        "body": shown_text(view.record) if may_see_body else None,
        "properties": user_properties(view.record.properties) if may_see_body else {},
        "standings": [_standing(one, view.id) for one in standings_of(view)],
        "actions": _actions(view) if request.user.has_perm(_CHANGE) else [],
        "is_due_later": view.state == "scheduled" and view.due_ms > now_ms,
    }


@page("console/parked.html", permission=_LOOK)
def parked_page(request: HttpRequest) -> Context:
    """What could not be handed over, each with its reason."""
    parked = wires.wiring().get_store().parked(limit=_PARKED_SHOWN + 1)
    return {
        "title": "Parked",
        "lead": "A message that can never be handed over is kept here with its reason instead of "
        "being dropped. Mend the cause, then release it.",
        "parked": parked[:_PARKED_SHOWN],
        "topics": cache.current().topics,
        "more": len(parked) > _PARKED_SHOWN,
        "may_change": request.user.has_perm(_CHANGE),
    }


def _standing(one: GroupStanding, message_id: str) -> dict[str, Any]:
    return {
        "group": one.group,
        "consumer_id": one.consumer_id,
        "standing": one.standing,
        "chain": one.chain,
        "planned": one.planned,
        "events": events_of(one, message_id),
    }


def topic_names() -> list[str]:
    """What a topic's field offers."""
    return sorted(cache.current().topics)[:_TOPICS_OFFERED]


def shown_text(record: Record, limit: int | None = BODY_SHOWN_CHARACTERS) -> dict[str, Any]:
    """A record's body as text, whole or its beginning."""
    body, form = record.decoded_body(), record.flag
    shown, encoding = show_body(body, form)
    text = shown if isinstance(shown, str) else bytes(shown).decode(errors="replace")
    words = {TEXT: "text", JSON: "JSON"}.get(form, "bytes") if encoding != "base64" else "base64"
    return {
        "text": text if limit is None else text[:limit],
        "cut": limit is not None and len(text) > limit,
        "bytes": len(body),
        "form": words,
    }


def _actions(view: MessageView) -> list[dict[str, Any]]:
    """What can be done with it in its state."""
    by_state: dict[str, list[tuple[str, str, bool]]] = {
        "scheduled": [("move", "Move", False), ("deliver-now", "Deliver now", False),
                      ("cancel", "Cancel", True)],
        "cancelled": [("restore", "Restore", False)],
        "parked": [("release", "Release", False), ("cancel", "Discard", True)],
        "ready": [],
    }  # fmt: skip
    return [
        {"address": reverse(f"message-{name}", args=[view.id]), "label": label, "danger": danger}
        for name, label, danger in by_state.get(view.state, [])
    ]


# --- actions on one message


def _simple(
    name: str, sentence: str, button: str, done: str, work: Callable[[str, str], object], *,
    danger: bool = False,
) -> Callable[..., HttpResponseBase]:  # fmt: skip
    """The page of an action that needs nothing but a yes."""

    @page("console/confirm.html", permission=_CHANGE)
    def action_page(request: HttpRequest, message_id: str) -> Context | HttpResponseBase:
        view = get_message(message_id)
        if request.method == "POST":
            act(
                request,
                lambda: work(message_id, acting(request)),
                done=done,
                action=f"message.{name}",
                subject=message_id,
                detail={"topic": view.topic},
            )
            return leave(request, "message", message_id)
        return confirm(
            title=f"{button}?",
            sentence=sentence,
            button=button,
            back=reverse("message", args=[message_id]),
            trail=_trail(view),
            danger=danger,
            view=view,
        )

    return action_page


def _trail(view: MessageView) -> list[tuple[str, str]]:
    return [
        ("Messages", reverse("messages")),
        (view.id[:8] + "…", reverse("message", args=[view.id])),
    ]


def _now_ms() -> int:
    return wires.wiring().get_clock().now_ms()


cancel_page = _simple(
    "cancel",
    "No one will receive this message, unless an operator restores it within the retention.",
    "Cancel the message",
    "Cancelled: no one will receive it.",
    lambda message_id, by: changes.cancel_message(
        message_id=message_id, by=by, reason="by an operator"
    ),
    danger=True,
)
deliver_now_page = _simple(
    "deliver-now",
    "Its due time becomes now, and it is handed over at once.",
    "Deliver it now",
    "It is due now and being handed over.",
    lambda message_id, by: changes.move_message(message_id=message_id, due_ms=_now_ms(), by=by),
)
restore_page = _simple(
    "restore",
    "It waits again with the due time that it had; if that has passed, it is handed over at once.",
    "Restore the message",
    "It waits again.",
    lambda message_id, by: changes.restore_message(message_id=message_id, by=by),
)
release_page = _simple(
    "release",
    "It is tried again at once. If the cause is still there it is parked again.",
    "Release the message",
    "Released: it is handed over again.",
    lambda message_id, by: changes.release_message(message_id=message_id, by=by),
)


@page("console/confirm.html", permission=_CHANGE)
def move_page(request: HttpRequest, message_id: str) -> Context | HttpResponseBase:
    """Another due time."""
    view = get_message(message_id)
    form = WhenForm(posted(request))
    if request.method == "POST" and form.is_valid():
        try:
            due_ms = form.due_ms(_now_ms())
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            act(
                request,
                lambda: changes.move_message(
                    message_id=message_id, due_ms=due_ms, by=acting(request)
                ),
                done="Moved.",
                action="message.move",
                subject=message_id,
                detail={"topic": view.topic, "due_ms": due_ms},
            )
            return leave(request, "message", message_id)
    return confirm(
        title="Move the message",
        sentence="It keeps its id, keys and body, and waits for the new moment.",
        button="Move it",
        back=reverse("message", args=[message_id]),
        trail=_trail(view),
        form=form,
        view=view,
    )


@page("console/send.html", permission="queues.send_message")
def send_page(request: HttpRequest) -> Context | HttpResponseBase:
    """A message of one's own, to try things out."""
    form = SendForm(posted(request), initial={"topic": request.GET.get("topic", "")})
    if request.method == "POST" and form.is_valid():
        try:
            message_id = _send(form, acting(request))
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            done = "Sent."
            topic = form.cleaned_data["topic"]
            act(
                request,
                lambda: None,
                done=done,
                action="message.send",
                subject=message_id,
                detail={"topic": topic},
            )
            return redirect("message", message_id)
    return {
        "title": "Send a message",
        "lead": "It is a message like any other: groups that subscribe to its topic receive it.",
        "trail": [("Messages", reverse("messages"))],
        "form": form,
        "topics": topic_names(),
    }


def _send(form: SendForm, by: str) -> str:
    fields = form.cleaned_data
    return send_own(
        topic=fields["topic"],
        body=fields["body"],
        form=TEXT,
        due=form.due(_now_ms()),
        tag=fields["tag"] or None,
        keys=fields["keys"].split(),
        properties=form.property_map(),
        by=by,
    )


def send_own(
    *, topic: str, body: str, form: int, due: Due, tag: str | None, keys: Sequence[str],
    properties: Mapping[str, str], by: str,
) -> str:  # fmt: skip
    """Send a message that a person wrote; its id."""
    now_ms = _now_ms()
    found = topic_for_send(topic)
    message_id = wires.wiring().get_store().new_id(found.name, now_ms)
    message = compose(
        topic=found,
        unique_id=message_id,
        body=bytes_of_base64(body) if form == BYTES else body.encode(),
        form=form,
        by=by,
        now_ms=now_ms,
        due=due,
        tag=tag,
        keys=keys,
        properties=properties,
    )
    made(found)
    place([message])
    return message_id
