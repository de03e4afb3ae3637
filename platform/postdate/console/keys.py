"""The pages of API keys: made, given a new secret, revoked; a secret is shown once."""

from datetime import timedelta
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from postdate.console.actions import act, confirm
from postdate.console.pages import Context, acting, page, posted, render_page
from queues.problems import Problem
from queues.quotas import Quotas
from queues.selectors import keys
from queues.selectors.keys import quotas_of
from queues.services.audit import now
from queues.services.keys import issue_key, revoke_key, rotate_key

_SCOPES = [
    ("send", "send, cancel, move"),
    ("consume", "receive, ack, retry"),
    ("inspect", "look at messages and figures"),
    ("manage", "topics, groups, bulk changes"),
]
_OVERLAPS = [("0", "at once"), ("3600", "an hour"), ("86400", "a day"), ("604800", "a week")]
_LIMITS = ("requests_per_second", "messages_per_second", "messages_per_day")


class KeyForm(forms.Form):
    """A new API key."""

    name = forms.CharField(max_length=100, help_text="Which program will use it.")
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
    days = forms.IntegerField(
        required=False, min_value=1, label="Expires after days", help_text="Empty: never."
    )
    requests_per_second = forms.IntegerField(required=False, min_value=1)
    messages_per_second = forms.IntegerField(required=False, min_value=1)
    messages_per_day = forms.IntegerField(
        required=False, min_value=1, help_text="Empty limits are none."
    )


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
                    f"{value:,} {name.replace('_', ' ')}"
                    for name in _LIMITS
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
        fields = form.cleaned_data
        days = fields["days"]
        try:
            issued = issue_key(
                name=fields["name"],
                by=acting(request),
                scopes=fields["scopes"],
                topic_patterns=fields["topic_patterns"].split(),
                group_patterns=fields["group_patterns"].split(),
                quotas=Quotas(**{name: fields[name] for name in _LIMITS if fields[name]}),
                expires_at=now() + timedelta(days=days) if days else None,
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
    )


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
