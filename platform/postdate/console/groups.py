"""The pages of groups: how far each is, who consumes, and why nothing arrives."""

from collections import Counter
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from postdate.console.actions import Begun, act, confirm, follow
from postdate.console.groupform import GroupForm, told, told_policy
from postdate.console.pages import Context, acting, page, posted
from postdate.console.tags import moment
from queues import wires
from queues.selectors.backlog import count_dead, count_retrying, lag_of
from queues.selectors.consumers import last_seen_ms, list_consumers
from queues.selectors.control import GroupView, cache, get_group
from queues.selectors.dueload import waiting_by_topic
from queues.selectors.leases import list_leases
from queues.services import groups
from queues.services.retries import list_retries
from queues.store.consuming import QueueLag
from queues.store.names import RETRY_PREFIX

_LOOK = "queues.view_group"
_OPERATE = "queues.operate_group"
_PAGE = 50
_LEASES_SHOWN = 50
_CONSUMERS_SHOWN = 100
#: Retries that are read to tell their attempts.
_RETRIES_READ = 500
#: Who asked for messages within this time consumes: a poll takes 20 s, a note of it as long.
_SEEN_MS = 60_000


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group with its figures."""

    group: GroupView
    ready: int
    leased: int
    oldest_ready_ms: int | None
    exact: bool
    #: Retries that wait, and dead letters.
    retrying: int
    dead: int
    #: A consumer asked for messages within the minute, or holds one.
    consuming: bool


@page("console/groups.html", permission=_LOOK)
def groups_page(request: HttpRequest) -> Context:
    """Every group, fifty a page."""
    found = cache.current().groups
    wanted = request.GET.get("q", "").strip()
    names = sorted(name for name in found if wanted.lower() in name.lower())
    after = request.GET.get("after", "")
    rest = [name for name in names if name > after]
    shown = rest[:_PAGE]
    seen, waiting = last_seen_ms(shown), waiting_by_topic()
    return {
        "title": "Groups",
        "rows": [
            _row(found[name], seen.get(name, 0), waiting.get(RETRY_PREFIX + name, 0))
            for name in shown
        ],
        "count": len(names),
        "query": wanted,
        "after": rest[_PAGE - 1] if len(rest) > _PAGE else "",
        "is_later_page": bool(after),
    }


def _row(group: GroupView, seen_ms: int, retrying: int) -> GroupRow:
    lags = lag_of(group)
    now_ms = wires.wiring().get_clock().now_ms()
    leased = sum(lag.leased for lag in lags)
    oldest = [lag.oldest_ready_ms for lag in lags if lag.oldest_ready_ms is not None]
    return GroupRow(
        group,
        ready=sum(lag.ready for lag in lags),
        leased=leased,
        oldest_ready_ms=min(oldest, default=None),
        exact=all(lag.ready_exact for lag in lags),
        retrying=retrying,
        dead=count_dead(group.name),
        consuming=bool(leased) or now_ms - seen_ms < _SEEN_MS,
    )


@page("console/group.html", permission=_LOOK)
def group_page(request: HttpRequest, name: str) -> Context:
    """One group."""
    del request
    group = get_group(name)
    lags = lag_of(group)
    held = list_leases(group, after=None, limit=_LEASES_SHOWN)
    leases = [lease for lease, _ in held.leases]
    consumers = list_consumers(name, leases, limit=_CONSUMERS_SHOWN)
    seen_ms = max((one.seen_ms for one in consumers), default=0)
    row = _row(group, seen_ms, count_retrying(name))
    return {
        "title": group.name,
        "trail": [("Groups", reverse("groups"))],
        "group": group,
        "row": row,
        "policy": told_policy(group.retry_policy),
        "lags": lags,
        "held": held,
        "consumers": consumers,
        "attempts": _by_attempt(group) if row.retrying else [],
        "attempts_of": min(row.retrying, _RETRIES_READ),
        "why": why_nothing(group, lags, row, seen_ms),
    }


def _by_attempt(group: GroupView) -> list[tuple[int, int]]:
    """How many of the next retries are which attempt."""
    views, _, _ = list_retries(group=group, after=None, limit=_RETRIES_READ)
    return sorted(Counter(view.record.reconsume_times + 1 for view in views).items())


def why_nothing(
    group: GroupView, lags: list[QueueLag], row: GroupRow, seen_ms: int
) -> list[tuple[str, str]]:
    """Why a consumer of the group may receive nothing now: tone and sentence, each."""
    reasons: list[tuple[str, str]] = []
    if group.paused:
        reasons.append(("warn", "The group is paused: receives come back empty until it resumes."))
    reasons += _why_by_topic(group)
    full = [f"{lag.topic}/{lag.queue_id}" for lag in lags if lag.leased >= _LEASES_FULL]
    if full:
        text = f"So many messages are leased that nothing more is handed out: {', '.join(full)}."
        reasons.append(("bad", text))
    if group.ordered and (row.leased or row.retrying):
        text = (
            f"It is ordered: what has the sharding key of one of the {row.leased:,} messages that "
            f"are held or of the {row.retrying:,} that are tried again comes after that is settled."
        )
        reasons.append(("info", text))
    if row.ready and not row.consuming and not group.paused:
        since = format_html("since {}", moment(seen_ms)) if seen_ms else "within the day"
        text = "{} messages are ready, and no consumer asked for any {}."
        reasons.append(("bad", format_html(text, f"{row.ready:,}", since)))
    elif not row.ready and not group.paused:
        reasons.append(("info", "Nothing is ready: it has received all that came so far."))
    return reasons


def _why_by_topic(group: GroupView) -> list[tuple[str, str]]:
    if not group.subscriptions:
        return [("warn", "It subscribes to no topic.")]
    reasons = []
    for subscription in group.subscriptions:
        if subscription.topic not in cache.current().topics:
            text = f"There is no topic {subscription.topic} yet; nothing was ever sent to it."
            reasons.append(("warn", text))
        elif subscription.tags.strip() != "*":
            text = f"Of {subscription.topic} it takes only the tags {subscription.tags}."
            reasons.append(("info", text))
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
        columns=True,
    )


@page("console/confirm.html", permission="queues.change_group")
def group_change_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Other subscriptions or retries."""
    group = get_group(name)
    form = GroupForm(posted(request), initial=told(group))
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
        columns=True,
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
    row = _row(get_group(name), 0, count_retrying(name))
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
        facts=[
            ("Ready", f"{row.ready:,}"),
            ("Held by consumers", f"{row.leased:,}"),
            ("Waits to be tried again", f"{row.retrying:,}"),
            ("Dead letters", f"{row.dead:,}"),
        ],
    )
