"""The pages of dead letters: why they died, and driving, mending, exporting or discarding them."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from postdate.console.actions import act, confirm
from postdate.console.failures import trail_of
from postdate.console.forms import WhenForm
from postdate.console.messages import send_own, shown_text
from postdate.console.pages import Context, acting, page, posted
from queues import wires
from queues.admin.pages import read_moment
from queues.api.telling import user_properties
from queues.api.tokens import make_token, read_token
from queues.moments import format_moment
from queues.problems import Problem
from queues.selectors import deadletters as selectors
from queues.selectors.control import cache, get_group
from queues.selectors.deadletters import LetterFilter
from queues.services import deadletters
from queues.services.audit import note_action
from queues.services.deadletters import RedriveOptions, Selection
from queues.store.chainlookup import DeadLetter
from queues.store.limits import DUE_MS_MAX

_LOOK = "queues.view_group"
_OPERATE = "queues.operate_group"
_BODY = "queues.view_body"
_PAGE = 50
_GROUPS_SHOWN = 200
#: The property by which a message that was mended names the dead letter that it was made of.
EDITED_FROM = "edited-from"


@page("console/deadgroups.html", permission=_LOOK)
def dead_page(request: HttpRequest) -> Context:
    """The groups that gave something up."""
    del request
    dead = [row for name in sorted(cache.current().groups) if (row := _dead_row(name))["kept"]]
    return {
        "title": "Dead letters",
        "lead": "What failed too often, or a consumer gave up, is kept by its group with every "
        "reason. Mend the cause, then drive it again.",
        "rows": sorted(dead, key=lambda row: (-row["waiting"], -row["kept"]))[:_GROUPS_SHOWN],
        "count": sum(row["waiting"] for row in dead),
    }


def _dead_row(name: str) -> dict[str, Any]:
    """A group's dead letters in figures."""
    letters = wires.wiring().get_store().chains.lookup.letters(name)
    kept, redriven = len(letters.units), int(letters.redriven.sum())
    return {
        "name": name,
        "kept": kept,
        "waiting": kept - redriven,
        "redriven": redriven,
        "newest_ms": int(letters.died_ms.max()) if kept else None,
        "oldest_ms": int(letters.died_ms.min()) if kept else None,
    }


@page("console/deadletters.html", permission=_LOOK)
def letters_page(request: HttpRequest, name: str) -> Context:
    """One group's, by reason and one by one."""
    get_group(name)
    wanted, problem = _wanted(request)
    listing = ["console-dead", name, *sorted(_query(request).items())]
    try:
        position = read_token(listing, request.GET.get("page") or None)
    except Problem:
        position = None
    after = (position[0], position[1]) if position else None
    found = selectors.list_letters(name, wanted, after=after, limit=_PAGE)
    reasons, all_reasons = selectors.group_reasons(name, LetterFilter())
    query = _query(request)
    token = make_token(listing, list(found.last)) if found.last else ""
    return {
        "title": f"Dead letters of {name}",
        "crumb": "Dead letters",
        "trail": trail_of(name),
        "name": name,
        "found": found,
        "problem": problem,
        "reasons": [
            (one, urlencode({"reason": one.reason}) if one.reason else "") for one in reasons
        ],
        "all_reasons": all_reasons,
        "wanted": wanted,
        "narrowed": bool(query),
        "query": urlencode(query),
        "following": f"?{urlencode({**query, 'page': token})}" if token else "",
        "is_later_page": bool(position),
        "may": request.user.has_perm(_OPERATE),
        "may_export": request.user.has_perm(_OPERATE) and request.user.has_perm(_BODY),
    }


_NAMES = ("topic", "key", "reason", "died_after", "died_after_ms", "died_before", "died_before_ms")


def _query(request: HttpRequest) -> dict[str, str]:
    return {name: value for name in _NAMES if (value := request.GET.get(name, "").strip())}


def _wanted(request: HttpRequest) -> tuple[LetterFilter, str]:
    """The filter of an address, and what is wrong with it."""
    fields = _query(request)
    try:
        after_ms = read_moment(fields, "died_after")
        before_ms = read_moment(fields, "died_before")
    except Problem as problem:
        return LetterFilter(), problem.detail
    wanted = LetterFilter(
        topic=fields.get("topic"),
        key=fields.get("key"),
        reason=fields.get("reason"),
        died_from_ms=0 if after_ms is None else max(0, after_ms),
        died_before_ms=DUE_MS_MAX if before_ms is None else min(before_ms, DUE_MS_MAX),
    )
    return wanted, ""


@page("console/deadletter.html", permission=_LOOK)
def letter_page(request: HttpRequest, name: str, message_id: str) -> Context:
    """One dead letter: its attempts, earlier deaths, body."""
    letter = selectors.get_letter(name, message_id)
    may_see = request.user.has_perm(_BODY)
    return {
        "title": "Dead letter",
        "crumb": message_id[:8] + "…",
        "trail": trail_of(name, ("Dead letters", reverse("letters", args=[name]))),
        "letter": letter,
        "may_see_body": may_see,
        "body": shown_text(letter.record) if may_see else None,
        "properties": user_properties(letter.record.properties) if may_see else {},
        "may": request.user.has_perm(_OPERATE),
        "may_mend": request.user.has_perm("queues.send_message") and may_see,
    }


# --- actions


class RedriveForm(forms.Form):
    """How to drive them."""

    messages_per_second = forms.FloatField(
        required=False,
        min_value=0.1,
        label="Messages a second",
        help_text="Empty: as fast as can be.",
    )
    stop_after_failures = forms.IntegerField(
        required=False, min_value=1, label="Stop when so many failed again"
    )
    again = forms.BooleanField(required=False, label="Also those that were driven before")


@page("console/confirm.html", permission=_OPERATE)
def redrive_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Drive what the filter means again; the page is the dry run."""
    group = get_group(name)
    selection = _selection(request)
    form = RedriveForm(posted(request))
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        options = RedriveOptions(
            again=fields["again"],
            messages_per_second=fields["messages_per_second"],
            stop_after_failures=fields["stop_after_failures"],
        )
        try:
            done = deadletters.redrive(
                group=group, selection=selection, options=options, by=acting(request)
            )
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            if done.operation is not None:
                return redirect("operation", done.operation.id)
            driven = sum(one.outcome == "redriven" for one in done.results)
            messages.success(request, f"{driven:,} of {len(done.results):,} are driven again.")
            return redirect("letters", name)
    count, sample = deadletters.look_at(group=group, selection=selection, again=False)
    return confirm(
        title="Drive dead letters again?",
        sentence="The group receives them at once, with attempts counted from one. They stay here, "
        "marked; what dies again replaces its former letter.",
        button=f"Drive {count:,} again",
        back=reverse("letters", args=[name]),
        trail=trail_of(name, ("Dead letters", reverse("letters", args=[name]))),
        form=form,
        facts=[("Group", name), ("Which", _words(request)), ("How many", f"{count:,}")],
        sample=[f"{one.id}: {one.reason or 'no reason given'}" for one in sample],
    )


@page("console/confirm.html", permission=_OPERATE)
def letters_purge_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Discard what the filter means."""
    group = get_group(name)
    selection = _selection(request)
    if request.method == "POST":
        act(
            request,
            lambda: deadletters.purge(group=group, selection=selection, by=acting(request)),
            done="They are discarded.",
        )
        return redirect("letters", name)
    count = sum(1 for _ in deadletters.selected(name, selection, redriven=True))
    return confirm(
        title="Discard dead letters?",
        sentence="Nobody can drive them again afterwards. Export them first if in doubt.",
        button=f"Discard {count:,}",
        back=reverse("letters", args=[name]),
        trail=trail_of(name, ("Dead letters", reverse("letters", args=[name]))),
        danger=True,
        facts=[("Group", name), ("Which", _words(request)), ("How many", f"{count:,}")],
    )


@page("console/confirm.html", permission=_OPERATE)
def letter_discard_page(
    request: HttpRequest, name: str, message_id: str
) -> Context | HttpResponseBase:
    """Discard one."""
    group, letter = get_group(name), selectors.get_letter(name, message_id)
    if request.method == "POST":
        act(
            request,
            lambda: deadletters.discard(
                group=group, message_id=message_id, by=acting(request), reason="by an operator"
            ),
            done="Discarded.",
        )
        return redirect("letters", name)
    return confirm(
        title="Discard the dead letter?",
        sentence="It is gone for good: nobody can drive it again.",
        button="Discard it",
        back=reverse("letter", args=[name, message_id]),
        trail=trail_of(name, ("Dead letters", reverse("letters", args=[name]))),
        danger=True,
        facts=[("Message", message_id), ("Reason", letter.reason or "none given")],
    )


class MendForm(WhenForm):
    """The message as it should have been."""

    body = forms.CharField(widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}))
    discard = forms.BooleanField(
        required=False, initial=True, label="Discard the dead letter when it is sent"
    )
    field_order = ("body", "delay", "at", "discard")


@page("console/confirm.html", permission=_OPERATE)
def letter_mend_page(
    request: HttpRequest, name: str, message_id: str
) -> Context | HttpResponseBase:
    """Edit the body and send it as a new message that names the old one."""
    if not (request.user.has_perm("queues.send_message") and request.user.has_perm(_BODY)):
        raise PermissionDenied("queues.send_message")
    group, letter = get_group(name), selectors.get_letter(name, message_id)
    form = MendForm(posted(request), initial={"body": shown_text(letter.record)["text"]})
    if request.method == "POST" and form.is_valid():
        try:
            sent = send_own(
                topic=letter.topic,
                body=form.cleaned_data["body"],
                form=letter.record.flag,
                due=form.due(wires.wiring().get_clock().now_ms()),
                tag=letter.record.tag or None,
                keys=letter.record.keys,
                properties={**user_properties(letter.record.properties), EDITED_FROM: message_id},
                by=acting(request),
            )
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            detail = {"group": name, "from": message_id, "topic": letter.topic}
            note_action(by=acting(request), action="deadletter.mend", subject=sent, detail=detail)
            if form.cleaned_data["discard"]:
                deadletters.discard(
                    group=group, message_id=message_id, by=acting(request),
                    reason=f"sent anew as {sent}",
                )  # fmt: skip
            messages.success(request, "Sent as a new message.")
            return redirect("message", sent)
    return confirm(
        title="Edit and send as a new message",
        sentence=f"A new message for {letter.topic}, with the same tag, keys and properties, and "
        f"the property {EDITED_FROM} naming this one. Every group of the topic receives it.",
        button="Send it",
        back=reverse("letter", args=[name, message_id]),
        trail=trail_of(name, ("Dead letters", reverse("letters", args=[name]))),
        form=form,
        facts=[("Dead letter", message_id), ("Reason", letter.reason or "none given")],
    )


@page("console/confirm.html", permission=_OPERATE)
def letters_export_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """All that the filter means, as JSON lines."""
    if not request.user.has_perm(_BODY):
        raise PermissionDenied(_BODY)
    get_group(name)
    selection = _selection(request)
    note_action(
        by=acting(request),
        action="deadletter.export",
        subject=name,
        detail={"which": _words(request)},
    )
    response = StreamingHttpResponse(_lines(name, selection), content_type="application/jsonl")
    response["Content-Disposition"] = 'attachment; filename="dead-letters.jsonl"'
    return response


def _lines(name: str, selection: Selection) -> Iterator[bytes]:
    for letter in deadletters.selected(name, selection, redriven=True):
        yield json.dumps(_told(letter)).encode() + b"\n"


def _told(letter: DeadLetter) -> dict[str, Any]:
    body = shown_text(letter.record, limit=None)
    return {
        "id": letter.id,
        "topic": letter.topic,
        "tag": letter.record.tag,
        "keys": list(letter.record.keys),
        "properties": user_properties(letter.record.properties),
        "body": body["text"],
        "form": body["form"],
        "died_at": format_moment(letter.died_ms),
        "attempts": letter.attempts,
        "failures": [
            {"attempt": one.attempt, "at": format_moment(one.at_ms), "reason": one.reason}
            for one in letter.failures
        ],
        "redriven_at": None if letter.redriven_ms is None else format_moment(letter.redriven_ms),
    }


def _selection(request: HttpRequest) -> Selection:
    one = request.GET.get("id", "")
    if one:
        return Selection(ids=(one,))
    return Selection(matching=_wanted(request)[0])


def _words(request: HttpRequest) -> str:
    if request.GET.get("id"):
        return request.GET["id"]
    said = [f"{name.replace('_', ' ')} {value}" for name, value in _query(request).items()]
    return ", ".join(said) or "all"
