"""The pages of bulk changes: what a filter means is looked at first, then carried out as seen."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from postdate.console import drawing
from postdate.console.actions import confirm
from postdate.console.forms import MOMENT_INPUT
from postdate.console.messages import topic_names
from postdate.console.pages import Context, acting, page, posted
from postdate.console.searching import everyone, level_choices
from queues import wires
from queues.admin.pages import read_moment
from queues.problems import Problem
from queues.selectors.listing import Filter
from queues.selectors.scheduled import Window
from queues.services import plans, spreading
from queues.services.plans import Preview
from queues.store.limits import DUE_MS_MAX

_MAY = "queues.bulk_message"
_HEIGHT = 140.0
_VERBS = [
    ("cancel", "Cancel them"),
    ("reschedule", "Move them"),
    ("deliver-now", "Deliver them now"),
    ("restore", "Restore cancelled ones"),
]


class BulkForm(forms.Form):
    """What to do, and to which messages."""

    verb = forms.ChoiceField(choices=_VERBS, label="Do what", widget=forms.RadioSelect)
    topic = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"list": "topics", "autocomplete": "off"})
    )
    kind = forms.ChoiceField(
        required=False, choices=[("", "Any"), ("level", "Delay level"), ("timed", "Timed")]
    )
    level = forms.TypedChoiceField(
        required=False, label="Delay level", coerce=int, empty_value=None,
        choices=lambda: [("", "Any"), *level_choices()],
    )  # fmt: skip
    key = forms.CharField(required=False)
    tag = forms.CharField(required=False)
    due_after = forms.CharField(required=False, widget=MOMENT_INPUT, label="Due from")
    due_before = forms.CharField(required=False, widget=MOMENT_INPUT, label="Due before")
    at = forms.CharField(required=False, widget=MOMENT_INPUT, label="Move to")
    delay = forms.CharField(required=False, label="Or to, from now", help_text="Such as 2h or 3d.")
    shift = forms.CharField(
        required=False, label="Or by", help_text="Added to each one's own time: 30m, -15m."
    )

    def wanted(self) -> Filter | None:
        """The filter; None for an empty one, which would mean everything."""
        fields = self.cleaned_data
        after_ms, before_ms = (
            read_moment(self.data, "due_after"),
            read_moment(self.data, "due_before"),
        )
        named = [fields[name] for name in ("topic", "kind", "level", "key", "tag")]
        if not any(named) and after_ms is None and before_ms is None:
            return None
        window = Window(
            topic=fields["topic"] or None,
            kind="level" if fields["level"] else fields["kind"] or None,
            level=fields["level"],
            due_from_ms=0 if after_ms is None else max(0, after_ms),
            due_before_ms=DUE_MS_MAX if before_ms is None else min(before_ms, DUE_MS_MAX),
        )
        return Filter(window, key=fields["key"] or None, tag=fields["tag"] or None)

    def target(self, now_ms: int) -> plans.Target | None:
        """Where a move leads."""
        fields = self.cleaned_data
        if fields["verb"] != "reschedule":
            return None
        return plans.target_of(
            deliver_at=read_moment(self.data, "at"),
            delay=fields["delay"] or None,
            shift=fields["shift"] or None,
            now_ms=now_ms,
        )


@page("console/bulk.html", permission=_MAY)
def bulk_page(request: HttpRequest) -> Context | HttpResponseBase:
    """Choose, look, carry out."""
    now_ms = wires.wiring().get_clock().now_ms()
    if request.method == "POST" and request.POST.get("plan_id"):
        return _carry_out(request, now_ms)
    asked = {name: value for name, value in request.GET.items() if name != "q"}
    if request.GET.get("q"):
        asked["key"] = request.GET["q"]
    form = BulkForm(posted(request), initial={"verb": "cancel", **asked})
    context: Context = {
        "title": "Change many messages",
        "lead": "Say which and what. Nothing happens before you have seen how many they are and "
        "what it does to the forecast.",
        "trail": [("Messages", reverse("messages"))],
        "form": form,
        "topics": topic_names(),
        "moments": {
            name: request.GET.get(f"{name}_ms", "") for name in ("due_after", "due_before")
        },
    }
    if request.method == "POST" and form.is_valid():
        try:
            wanted = form.wanted()
            if wanted is None:
                form.add_error(
                    None, "Say which messages: a topic, key, tag, kind, level or due window."
                )
                return context
            verb = form.cleaned_data["verb"]
            seen = plans.preview(
                verb,
                wanted,
                form.target(now_ms),
                caller=everyone(acting(request)),
                now_ms=now_ms,
            )
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            words = dict(_VERBS)[verb]
            context |= {"seen": seen, "verb": verb, "words": words, "drawn": _draw(seen)}
    return context


def _carry_out(request: HttpRequest, now_ms: int) -> HttpResponseBase:
    try:
        operation = plans.carry_out_plan(
            verb=request.POST.get("verb", ""),
            plan_id=request.POST["plan_id"],
            caller=everyone(acting(request)),
            now_ms=now_ms,
        )
    except Problem as problem:
        messages.error(request, problem.detail)
        return redirect("bulk")
    return redirect("operation", operation.id)


def _draw(seen: Preview) -> dict[str, Any] | None:
    """The forecast without and with the change."""
    if not seen.buckets:
        return None
    top = drawing.nice_maximum(max(max(one.before, one.after) for one in seen.buckets))
    before = drawing.bars([one.before for one in seen.buckets], height=_HEIGHT, top=top)
    after = drawing.bars([one.after for one in seen.buckets], height=_HEIGHT, top=top)
    first, last = seen.buckets[0].start_ms, seen.buckets[-1].start_ms + seen.step_ms
    return {
        "columns": list(zip(before, after, seen.buckets, strict=True)),
        "lines": drawing.grid(top, height=_HEIGHT),
        "height": _HEIGHT,
        "first_ms": first,
        "last_ms": last,
        "step_ms": seen.step_ms,
    }


class SpreadForm(forms.Form):
    """Over how long."""

    over = forms.CharField(
        initial="1m", label="Over", help_text="From the second on: 30s, 2m. None becomes earlier."
    )


@page("console/confirm.html", permission=_MAY)
def spread_page(request: HttpRequest) -> Context | HttpResponseBase:
    """Spread what is due in one second over a longer time."""
    written = request.GET.get("at", "")
    at_ms = int(written) if written.isdecimal() and len(written) < len("9" * 15) else 0
    topic = request.GET.get("topic", "")
    form = SpreadForm(posted(request))
    if request.method == "POST" and form.is_valid():
        try:
            operation = spreading.spread_second(
                at_ms=at_ms,
                over=form.cleaned_data["over"],
                topic=topic or None,
                by=acting(request),
                now_ms=wires.wiring().get_clock().now_ms(),
            )
        except Problem as problem:
            form.add_error(None, problem.detail)
        else:
            return redirect("operation", operation.id)
    due = spreading.count_due(at_ms, topic or None)
    query = urlencode({"from": at_ms - 60_000, "span": "3m", **({"topic": topic} if topic else {})})
    return confirm(
        title="Spread a hot second",
        sentence="What is due in this second is moved, evenly and in its order, over the time that "
        "follows. Each message gets a new due time; nothing is handed over earlier than promised.",
        button="Spread it",
        back=f"{reverse('forecast')}?{query}",
        trail=[("Forecast", f"{reverse('forecast')}?{query}")],
        form=form,
        facts=[("Due in this second", f"{due:,}"), ("Topic", topic or "all")],
    )
