"""The pages of what failed: a group's waiting retries, and a group begun anew."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from postdate.console.actions import act, confirm
from postdate.console.forms import MOMENT_HELP, MOMENT_INPUT, WhenForm
from postdate.console.pages import Context, acting, page, posted
from queues import wires
from queues.admin.pages import read_moment
from queues.api.tokens import make_token, read_token
from queues.codes import Code
from queues.problems import Problem
from queues.selectors.control import get_group
from queues.selectors.scheduled import Place
from queues.services import retries
from queues.services.groups import reset_group
from queues.store import MessageView
from queues.store.chaintail import tail_of

_OPERATE = "queues.operate_group"
_PAGE = 50


def trail_of(name: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """The way to a group's pages."""
    return [("Groups", reverse("groups")), (name, reverse("group", args=[name])), *more]


@page("console/retries.html", permission="queues.view_group")
def retries_page(request: HttpRequest, name: str) -> Context:
    """What the group tries again, by when."""
    group = get_group(name)
    listing = ["console-retries", name]
    try:
        position = read_token(listing, request.GET.get("page") or None)
    except Problem:
        position = None
    views, last, count = retries.list_retries(
        group=group, after=Place(*position) if position else None, limit=_PAGE
    )
    token = "" if last is None else make_token(listing, [last.due_ms, last.holder, last.offset])
    return {
        "title": f"Retries of {name}",
        "crumb": "Retries",
        "trail": trail_of(name),
        "group": group,
        "rows": [told_retry(view) for view in views],
        "count": count,
        "following": token,
        "is_later_page": bool(position),
        "may": request.user.has_perm(_OPERATE),
    }


def told_retry(view: MessageView) -> dict[str, Any]:
    """A retry with its attempt and the last failure."""
    tail = tail_of(view.record.properties)
    failures = () if tail is None else tail.failures
    return {
        "view": view,
        "topic": view.topic if tail is None else tail.topic,
        "attempt": view.record.reconsume_times + 1,
        "failure": failures[-1] if failures else None,
    }


def _retry_action(
    name: str,
    message_id: str,
    sentence: str,
    button: str,
    *,
    danger: bool = False,
    form: Any = None,
) -> Context:
    return confirm(
        title=f"{button}?",
        sentence=sentence,
        button=button,
        back=reverse("retries", args=[name]),
        trail=trail_of(name, ("Retries", reverse("retries", args=[name]))),
        danger=danger,
        form=form,
        facts=[("Group", name), ("Message", message_id)],
    )


@page("console/confirm.html", permission=_OPERATE)
def retry_cancel_page(
    request: HttpRequest, name: str, message_id: str
) -> Context | HttpResponseBase:
    """The group never receives it again."""
    group = get_group(name)
    if request.method == "POST":
        act(
            request,
            lambda: retries.cancel_retry(
                group=group, message_id=message_id, by=acting(request), reason="by an operator"
            ),
            done="Cancelled: this group never receives it again.",
            action="retry.cancel",
            subject=message_id,
            detail={"group": name},
        )
        return redirect("retries", name)
    sentence = "This group never receives the message again; other groups are not touched."
    return _retry_action(name, message_id, sentence, "Cancel the retry", danger=True)


@page("console/confirm.html", permission=_OPERATE)
def retry_now_page(request: HttpRequest, name: str, message_id: str) -> Context | HttpResponseBase:
    """Try it now."""
    group = get_group(name)
    if request.method == "POST":
        now_ms = wires.wiring().get_clock().now_ms()
        act(
            request,
            lambda: retries.move_retry(
                group=group, message_id=message_id, due_ms=now_ms, by=acting(request)
            ),
            done="It is tried now.",
            action="retry.deliver-now",
            subject=message_id,
            detail={"group": name},
        )
        return redirect("retries", name)
    sentence = "It is handed to the group at once, as its next attempt."
    return _retry_action(name, message_id, sentence, "Try it now")


@page("console/confirm.html", permission=_OPERATE)
def retry_move_page(request: HttpRequest, name: str, message_id: str) -> Context | HttpResponseBase:
    """Try it at another time."""
    group = get_group(name)
    form = WhenForm(posted(request))
    if request.method == "POST" and form.is_valid():
        try:
            due_ms = form.due_ms(wires.wiring().get_clock().now_ms())
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            act(
                request,
                lambda: retries.move_retry(
                    group=group, message_id=message_id, due_ms=due_ms, by=acting(request)
                ),
                done="Moved.",
                action="retry.move",
                subject=message_id,
                detail={"group": name, "due_ms": due_ms},
            )
            return redirect("retries", name)
    sentence = "Its next attempt waits for the new moment; the attempts already made count."
    return _retry_action(name, message_id, sentence, "Move the retry", form=form)


class ResetForm(forms.Form):
    """Where the group begins anew."""

    to = forms.ChoiceField(
        choices=[
            ("latest", "The end: skip what is there"),
            ("earliest", "The beginning: receive all that is kept, again"),
            ("time", "A moment: receive what was delivered since then, again"),
        ],
        widget=forms.RadioSelect,
        initial="time",
        label="Begin at",
    )
    at = forms.CharField(
        required=False,
        widget=MOMENT_INPUT,
        label="Moment",
        help_text=MOMENT_HELP,
    )

    cancel_retries = forms.BooleanField(
        required=False,
        label="Cancel what is tried again as well",
        help_text="Otherwise waiting retries stay and come when they are due.",
    )

    def place(self) -> str | int:
        """What the service takes."""
        if self.cleaned_data["to"] != "time":
            return str(self.cleaned_data["to"])
        at_ms = read_moment(self.data, "at")
        if at_ms is None:
            raise Problem(Code.FIELD_REQUIRED, "Say from which moment on.")
        return at_ms


@page("console/confirm.html", permission=_OPERATE)
def group_reset_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Begin anew somewhere else."""
    group = get_group(name)
    form = ResetForm(posted(request))
    if request.method == "POST" and form.is_valid():
        try:
            reset = reset_group(
                name=name,
                to=form.place(),
                by=acting(request),
                cancel_retries=form.cleaned_data["cancel_retries"],
            )
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            gone = f" {reset.cancelled:,} retries are cancelled." if reset.cancelled else ""
            act(request, lambda: None, done=f"{name} begins anew.{gone}")
            return redirect("group", name)
    return confirm(
        title=f"Reset {name}?",
        sentence="The group stands elsewhere in every queue. What its consumers hold now is void: "
        "their acks are refused, and attempts count from one.",
        button="Reset the group",
        back=reverse("group", args=[name]),
        trail=trail_of(name),
        danger=True,
        form=form,
        facts=[
            (
                "Waits to be tried again",
                f"{retries.list_retries(group=group, after=None, limit=1)[2]:,}",
            )
        ],
    )
