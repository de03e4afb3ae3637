"""The pages of groups: how far each is, who consumes, and why nothing arrives."""

from dataclasses import dataclass

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from postdate.console.actions import Begun, act, confirm, follow
from postdate.console.pages import Context, acting, page, posted
from queues.limits import RETRIES_MAX
from queues.selectors.backlog import count_dead, count_retrying, lag_of
from queues.selectors.control import GroupView, cache, get_group
from queues.selectors.leases import list_leases
from queues.services import groups
from queues.services.groups import GroupPlan
from queues.store.consuming import QueueLag, Subscription
from queues.store.leases import Lease
from queues.store.record import Record

_LOOK = "queues.view_group"
_OPERATE = "queues.operate_group"
_PAGE = 50
_LEASES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group with its figures."""

    group: GroupView
    ready: int
    leased: int
    oldest_ready_ms: int | None
    exact: bool


class GroupForm(forms.Form):
    """A group as a person declares it."""

    name = forms.CharField()
    subscriptions = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="One topic a line; after a colon the tags that it takes: orders: paid || due",
    )
    max_retries = forms.IntegerField(
        min_value=0, max_value=RETRIES_MAX, initial=16, help_text="Then it is a dead letter."
    )
    mode = forms.ChoiceField(
        choices=[
            ("clustering", "one consumer each"),
            ("broadcasting", "every consumer each"),
        ],
        label="A message goes to",
    )
    ordered = forms.BooleanField(
        required=False,
        label="In order: one message of a sharding key at a time",
    )
    start_from = forms.ChoiceField(
        choices=[("latest", "what comes from now on"), ("earliest", "what is there already, too")],
        label="Begins with",
    )

    def plan(self, before: GroupView | None = None) -> GroupPlan:
        """What the service takes; what the form does not show stays as it was."""
        fields = self.cleaned_data
        lines = [line for line in fields["subscriptions"].splitlines() if line.strip()]
        pairs = [line.partition(":") for line in lines]
        return GroupPlan(
            subscriptions=[
                Subscription(topic=topic.strip(), tags=tags.strip() or "*")
                for topic, _, tags in pairs
            ],
            mode=fields["mode"],
            ordered=fields["ordered"],
            max_retries=fields["max_retries"],
            retry_queues=before.retry_queues if before else 1,
            retry_policy=dict(before.retry_policy) if before else {"type": "levels"},
            start_from=fields["start_from"],
        )


@page("console/groups.html", permission=_LOOK)
def groups_page(request: HttpRequest) -> Context:
    """Every group, fifty a page."""
    found = cache.current().groups
    wanted = request.GET.get("q", "").strip()
    names = sorted(name for name in found if wanted.lower() in name.lower())
    after = request.GET.get("after", "")
    rest = [name for name in names if name > after]
    return {
        "title": "Groups",
        "rows": [_row(found[name]) for name in rest[:_PAGE]],
        "count": len(names),
        "query": wanted,
        "after": rest[_PAGE - 1] if len(rest) > _PAGE else "",
        "is_later_page": bool(after),
    }


def _row(group: GroupView) -> GroupRow:
    lags = lag_of(group)
    oldest = [lag.oldest_ready_ms for lag in lags if lag.oldest_ready_ms is not None]
    return GroupRow(
        group,
        ready=sum(lag.ready for lag in lags),
        leased=sum(lag.leased for lag in lags),
        oldest_ready_ms=min(oldest, default=None),
        exact=all(lag.ready_exact for lag in lags),
    )


@page("console/group.html", permission=_LOOK)
def group_page(request: HttpRequest, name: str) -> Context:
    """One group."""
    del request
    group = get_group(name)
    lags = lag_of(group)
    held = list_leases(group, after=None, limit=_LEASES_SHOWN)
    return {
        "title": group.name,
        "trail": [("Groups", reverse("groups"))],
        "group": group,
        "row": _row(group),
        "lags": lags,
        "held": held,
        "consumers": _consumers(held.leases),
        "retrying": count_retrying(name),
        "dead": count_dead(name),
        "why": why_nothing(group, lags, held.count),
    }


def _consumers(leases: list[tuple[Lease, Record | None]]) -> list[tuple[str, int, int]]:
    """Who holds messages: name, how many, the newest lease's time."""
    found: dict[str, tuple[int, int]] = {}
    for lease, _ in leases:
        name = lease.consumer_id or "unnamed"
        count, newest = found.get(name, (0, 0))
        found[name] = (count + 1, max(newest, lease.since_ms))
    return [(name, count, newest) for name, (count, newest) in sorted(found.items())]


def why_nothing(group: GroupView, lags: list[QueueLag], leased: int) -> list[tuple[str, str]]:
    """Why a consumer of the group may receive nothing now: tone and sentence, each."""
    ready = sum(lag.ready for lag in lags)
    reasons: list[tuple[str, str]] = []
    if group.paused:
        reasons.append(("warn", "The group is paused: receives come back empty until it resumes."))
    if not group.subscriptions:
        reasons.append(("warn", "It subscribes to no topic."))
    for subscription in group.subscriptions:
        if subscription.topic not in cache.current().topics:
            text = f"There is no topic {subscription.topic} yet; nothing was ever sent to it."
            reasons.append(("warn", text))
        elif subscription.tags.strip() != "*":
            text = f"Of {subscription.topic} it takes only the tags {subscription.tags}."
            reasons.append(("info", text))
    full = [f"{lag.topic}/{lag.queue_id}" for lag in lags if lag.leased >= _LEASES_FULL]
    if full:
        text = f"So many messages are leased that nothing more is handed out: {', '.join(full)}."
        reasons.append(("bad", text))
    if ready and not leased and not group.paused:
        text = (
            f"{ready:,} messages are ready and nobody holds one: no consumer seems to be receiving."
        )
        reasons.append(("bad", text))
    elif not ready and not group.paused:
        reasons.append(("info", "Nothing is ready: it has received all that came so far."))
    return reasons


#: Leases at which a queue hands out nothing more.
_LEASES_FULL = 100_000


def _trail(name: str) -> list[tuple[str, str]]:
    return [("Groups", reverse("groups")), (name, reverse("group", args=[name]))]


# --- actions


@page("console/confirm.html", permission="queues.add_group")
def group_add_page(request: HttpRequest) -> Context | HttpResponseBase:
    """A new group."""
    form = GroupForm(posted(request))
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        if act(
            request,
            lambda: groups.declare_group(name=name, plan=form.plan(), by=acting(request)),
            done=f"The group {name} is there; its place in every queue is kept from now on.",
        ):
            return redirect("group", name)
    return confirm(
        title="New group",
        sentence="A group is a set of consumers that share the messages of its topics. Programs "
        "usually declare their own.",
        button="Make the group",
        back=reverse("groups"),
        trail=[("Groups", reverse("groups"))],
        form=form,
    )


@page("console/confirm.html", permission="queues.change_group")
def group_change_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Other subscriptions or retries."""
    group = get_group(name)
    lines = "\n".join(
        one.topic if one.tags == "*" else f"{one.topic}: {one.tags}" for one in group.subscriptions
    )
    initial = {
        "name": name,
        "subscriptions": lines,
        "max_retries": group.max_retries,
        "mode": group.mode,
        "ordered": group.ordered,
        "start_from": group.start_from,
    }
    form = GroupForm(posted(request), initial=initial)
    form.fields["name"].disabled = True
    if request.method == "POST" and form.is_valid():
        plan = form.plan(group)
        if act(
            request,
            lambda: groups.declare_group(name=name, plan=plan, by=acting(request)),
            done=f"{name} is changed.",
        ):
            return redirect("group", name)
    return confirm(
        title=f"Change {name}",
        sentence="The program that declares this group at its start will set it back to its own.",
        button="Change it",
        back=reverse("group", args=[name]),
        trail=_trail(name),
        form=form,
    )


@page("console/confirm.html", permission=_OPERATE)
def group_pause_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Pause a group, or let it go on."""
    group = get_group(name)
    if request.method == "POST":
        act(
            request,
            lambda: groups.set_paused(name=name, paused=not group.paused, by=acting(request)),
            done=f"{name} goes on." if group.paused else f"{name} is paused.",
        )
        return redirect("group", name)
    if group.paused:
        return confirm(
            title=f"Resume {name}?",
            sentence="Its consumers receive again, beginning where it stood.",
            button="Resume the group",
            back=reverse("group", args=[name]),
            trail=_trail(name),
        )
    return confirm(
        title=f"Pause {name}?",
        sentence="Receives come back empty until it resumes. What consumers hold they can still "
        "acknowledge, extend or give back; due retries go on; nothing is lost.",
        button="Pause the group",
        back=reverse("group", args=[name]),
        trail=_trail(name),
    )


@page("console/confirm.html", permission="queues.delete_group")
def group_delete_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Delete a group, with what its consumers hold."""
    row = _row(get_group(name))
    if request.method == "POST":
        begun: list[Begun | None] = []
        if act(
            request,
            lambda: begun.append(groups.delete_group(name=name, purge=True, by=acting(request))),
            done=f"{name} is deleted.",
        ):
            return follow(begun[0], "groups")
        return redirect("group", name)
    return confirm(
        title=f"Delete {name}?",
        sentence="Its place in every queue is forgotten, and what its consumers hold is given up. "
        "A group made anew under this name begins by its own rule.",
        button="Delete the group",
        back=reverse("group", args=[name]),
        trail=_trail(name),
        danger=True,
        facts=[("Ready", f"{row.ready:,}"), ("Held by consumers", f"{row.leased:,}")],
    )
