"""The pages of API keys: made, changed, given a new secret, revoked; a secret is shown once."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from postdate.console.actions import act, confirm
from postdate.console.pages import Context, acting, page, posted, render_page
from queues.limits import BURST_S_MAX
from queues.problems import Problem
from queues.quotas import BURST_S_DEFAULT, Quotas
from queues.selectors import keys
from queues.selectors.keys import quotas_of
from queues.services.audit import now
from queues.services.keys import change_key, issue_key, revoke_key, rotate_key

_SCOPES = [
    ("send", "send, cancel, move"),
    ("consume", "receive, ack, retry"),
    ("inspect", "look at messages and figures"),
    ("manage", "topics, groups, bulk changes"),
]
_OVERLAPS = [("0", "at once"), ("3600", "an hour"), ("86400", "a day"), ("604800", "a week")]
_RIGHTS = ("scopes", "topic_patterns", "group_patterns")
#: Quotas, and how a limit is told.
_QUOTAS = {
    "requests_per_second": "requests/s",
    "messages_per_second": "messages/s",
    "messages_per_day": "messages/day",
}
_LIMITS = (*_QUOTAS, "burst_seconds")
#: A century: further ends are no ends.
_DAYS_MAX = 36_500


class RightsForm(forms.Form):
    """What a key may."""

    scopes = forms.MultipleChoiceField(
        choices=_SCOPES,
        widget=forms.CheckboxSelectMultiple,
        initial=[scope for scope, _ in _SCOPES],
        label="It may",
    )
    topic_patterns = forms.CharField(
        initial="*", label="Topics", help_text="Names in which * is any; several with spaces."
    )
    group_patterns = forms.CharField(
        initial="*", label="Groups", help_text="Names in which * is any; several with spaces."
    )
    requests_per_second = forms.IntegerField(required=False, min_value=1)
    messages_per_second = forms.IntegerField(required=False, min_value=1)
    messages_per_day = forms.IntegerField(
        required=False, min_value=1, help_text="Empty limits are none."
    )
    burst_seconds = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=BURST_S_MAX,
        initial=BURST_S_DEFAULT,
        label="Burst, seconds",
        help_text="A program that rested may use so many seconds' worth of its limits at once.",
    )

    def rights(self) -> dict[str, Any]:
        """What was chosen, as the services take it."""
        fields = self.cleaned_data
        limits = {name: fields[name] for name in _QUOTAS}
        return {
            "scopes": fields["scopes"],
            "topic_patterns": fields["topic_patterns"].split(),
            "group_patterns": fields["group_patterns"].split(),
            "quotas": Quotas(**limits, burst_seconds=fields["burst_seconds"] or BURST_S_DEFAULT),
        }


class KeyForm(RightsForm):
    """A new API key."""

    name = forms.CharField(max_length=100, help_text="Which program will use it.")
    days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=_DAYS_MAX,
        label="Expires after days",
        help_text="Empty: never.",
    )
    field_order = ("name", *_RIGHTS, "days", *_LIMITS)

    def expiry(self) -> datetime | None:
        """When it expires; None: never."""
        days = self.cleaned_data["days"]
        return now() + timedelta(days=days) if days else None


class KeyChangeForm(RightsForm):
    """Other rights for a key, and another end."""

    expiry = forms.ChoiceField(
        choices=[
            ("keep", "as it is"),
            ("never", "never"),
            ("days", "after so many days from now:"),
        ],
        initial="keep",
        widget=forms.RadioSelect,
        label="Expires",
    )
    days = forms.IntegerField(
        required=False, min_value=1, max_value=_DAYS_MAX, label="Days from now"
    )
    field_order = (*_RIGHTS, "expiry", "days", *_LIMITS)

    def clean(self) -> dict[str, Any]:
        """The days are wanted where they are chosen."""
        fields: dict[str, Any] = super().clean() or {}
        if fields.get("expiry") == "days" and not fields.get("days") and "days" not in self.errors:
            self.add_error("days", "Say after how many days.")
        return fields

    def change(self) -> dict[str, Any]:
        """What was chosen, as the service takes it."""
        expiry, days = self.cleaned_data["expiry"], self.cleaned_data["days"]
        at = now() + timedelta(days=days) if expiry == "days" else None
        return {**self.rights(), "expires_at": at, "never_expires": expiry == "never"}


class RotateForm(forms.Form):
    """How long the old secret goes on."""

    overlap = forms.ChoiceField(
        choices=_OVERLAPS, initial="86400", label="The old secret is refused after"
    )


@page("console/keys.html", permission="queues.view_apikey")
def keys_page(request: HttpRequest) -> Context:
    """Every key, and what it may."""
    del request
    moment = now()
    rows = []
    for key in sorted(keys.list_keys(), key=lambda key: (key.revoked_at is not None, key.name)):
        expired = key.expires_at is not None and key.expires_at <= moment
        state = "revoked" if key.revoked_at else "expired" if expired else "live"
        quotas = quotas_of(key)
        rows.append(
            {
                "key": key,
                "state": state,
                "created_ms": _ms(key.created_at),
                "used_ms": _ms(key.last_used_at),
                "expires_ms": _ms(key.expires_at),
                "previous_ms": _ms(key.previous_until),
                "limits": [
                    f"{value:,} {words}"
                    for name, words in _QUOTAS.items()
                    if (value := getattr(quotas, name))
                ],
            }
        )
    return {
        "title": "API keys",
        "lead": "A program shows its key with every request. Give each program its own, with as "
        "little as it needs.",
        "rows": rows,
    }


def _ms(at: Any) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)


@page("console/confirm.html", permission="queues.add_apikey")
def key_add_page(request: HttpRequest) -> Context | HttpResponseBase:
    """A new key; its secret is on the page that answers, and nowhere else."""
    form = KeyForm(posted(request))
    if request.method == "POST" and form.is_valid():
        try:
            issued = issue_key(
                name=form.cleaned_data["name"],
                by=acting(request),
                expires_at=form.expiry(),
                **form.rights(),
            )
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            return show_secret(request, issued.key.name, issued.secret)
    return confirm(
        title="New API key",
        sentence="The key is shown once, on the next page.",
        button="Make the key",
        back=reverse("keys"),
        trail=_trail(),
        form=form,
        columns=True,
    )


@page("console/confirm.html", permission="queues.change_apikey")
def key_change_page(request: HttpRequest, key_id: int) -> Context | HttpResponseBase:
    """Other scopes, patterns, limits, or another end; the secret stays."""
    key = keys.get_key(key_id)
    form = KeyChangeForm(posted(request), initial=_told_rights(key))
    if request.method == "POST" and form.is_valid():
        try:
            change_key(key_id=key_id, by=acting(request), **form.change())
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            act(request, lambda: None, done=f"{key.name} is changed; every server goes by it now.")
            return redirect("keys")
    expires = "never" if key.expires_at is None else f"{key.expires_at:%Y-%m-%d %H:%M} UTC"
    return confirm(
        title=f"Change {key.name}",
        sentence="Its secret stays as it is. A request that is being answered ends as it began; "
        "the next one is judged by the new rights.",
        button="Change the key",
        back=reverse("keys"),
        trail=_trail(),
        form=form,
        facts=[("Begins with", f"{key.prefix}…"), ("Expires", expires)],
        columns=True,
    )


def _told_rights(key: Any) -> dict[str, Any]:
    return {
        **{name: getattr(key, name) for name in ("scopes", *_LIMITS)},
        "topic_patterns": " ".join(key.topic_patterns),
        "group_patterns": " ".join(key.group_patterns),
    }


@page("console/confirm.html", permission="queues.change_apikey")
def key_rotate_page(request: HttpRequest, key_id: int) -> Context | HttpResponseBase:
    """A new secret; the old one goes on for a while."""
    key = keys.get_key(key_id)
    form = RotateForm(posted(request))
    if request.method == "POST" and form.is_valid():
        overlap = timedelta(seconds=int(form.cleaned_data["overlap"]))
        try:
            issued = rotate_key(key_id=key_id, by=acting(request), overlap=overlap)
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            return show_secret(request, issued.key.name, issued.secret)
    return confirm(
        title=f"New secret for {key.name}?",
        sentence="The key keeps its name and rights. Give the program its new secret before the "
        "old one is refused.",
        button="Make the secret",
        back=reverse("keys"),
        trail=_trail(),
        form=form,
        facts=[("Begins with", f"{key.prefix}…")],
    )


@page("console/confirm.html", permission="queues.change_apikey")
def key_revoke_page(request: HttpRequest, key_id: int) -> Context | HttpResponseBase:
    """No process takes it any more."""
    key = keys.get_key(key_id)
    if request.method == "POST":
        act(
            request,
            lambda: revoke_key(key_id=key_id, by=acting(request)),
            done=f"{key.name} is revoked; no server takes it any more.",
        )
        return redirect("keys")
    return confirm(
        title=f"Revoke {key.name}?",
        sentence="Every program that uses it is refused at once. It cannot be taken back.",
        button="Revoke the key",
        back=reverse("keys"),
        trail=_trail(),
        danger=True,
        facts=[("Begins with", f"{key.prefix}…"), ("May", ", ".join(key.scopes))],
    )


def show_secret(request: HttpRequest, name: str, secret: str) -> HttpResponse:
    """The only page that a secret is ever on."""
    context = {"title": f"Key for {name}", "trail": _trail(), "name": name, "secret": secret}
    return render_page(request, "console/secret.html", context)


def _trail() -> list[tuple[str, str]]:
    return [("API keys", reverse("keys"))]
