"""The pages of topics: all of them, one, and what a person does to them."""

from dataclasses import dataclass

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from postdate.console import duebars
from postdate.console.actions import Begun, act, confirm, follow
from postdate.console.pages import Context, acting, page, posted
from queues import wires
from queues.limits import TOPIC_QUEUES_DEFAULT, TOPIC_QUEUES_MAX
from queues.selectors.control import TopicView, cache, get_topic, groups_of_topic
from queues.selectors.dueload import Span, due_load, waiting_by_topic
from queues.services import topics
from queues.store import QueueBounds

_LOOK = "queues.view_topic"
_PAGE = 100
_HOUR = Span(60_000, 60)


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic with its figures."""

    topic: TopicView
    waiting: int
    #: Messages in its queues, from the oldest kept one on.
    kept: int
    groups: int


class TopicForm(forms.Form):
    """A new topic."""

    name = forms.CharField(help_text="Letters, digits, _ and -; at most 127 characters.")
    queues = forms.IntegerField(
        min_value=1,
        max_value=TOPIC_QUEUES_MAX,
        initial=TOPIC_QUEUES_DEFAULT,
        help_text="More queues let more consumers work side by side; there can never be fewer.",
    )


class WidenForm(forms.Form):
    """More queues."""

    queues = forms.IntegerField(min_value=1, max_value=TOPIC_QUEUES_MAX)


@page("console/topics.html", permission=_LOOK)
def topics_page(request: HttpRequest) -> Context:
    """Every topic, a hundred a page."""
    snapshot = cache.current()
    wanted = request.GET.get("q", "").strip()
    names = sorted(name for name in snapshot.topics if wanted.lower() in name.lower())
    after = request.GET.get("after", "")
    rest = [name for name in names if name > after]
    waiting = waiting_by_topic()
    subscribed: dict[str, int] = {}
    for group in snapshot.groups.values():
        for subscription in group.subscriptions:
            subscribed[subscription.topic] = subscribed.get(subscription.topic, 0) + 1
    rows = [
        TopicRow(snapshot.topics[name], waiting.get(name, 0), _kept(name), subscribed.get(name, 0))
        for name in rest[:_PAGE]
    ]
    return {
        "title": "Topics",
        "rows": rows,
        "count": len(names),
        "query": wanted,
        "after": rest[_PAGE - 1] if len(rest) > _PAGE else "",
        "is_later_page": bool(after),
    }


@page("console/topic.html", permission=_LOOK)
def topic_page(request: HttpRequest, name: str) -> Context:
    """One topic: its queues, groups, and what is due for it."""
    del request
    topic = get_topic(name)
    store = wires.wiring().get_store()
    load = due_load(_HOUR, topic=name)
    stored = set(store.queue_ids(name))
    queues = [
        (queue_id, _bounds(store.queue_bounds(name, queue_id)) if queue_id in stored else None)
        for queue_id in range(topic.queues)
    ]
    return {
        "title": topic.name,
        "trail": [("Topics", reverse("topics"))],
        "topic": topic,
        "load": load,
        "due": duebars.draw(load.spans[0], load.at_ms),
        "queues": queues,
        "groups": groups_of_topic(name),
    }


@page("console/confirm.html", permission="queues.add_topic")
def topic_add_page(request: HttpRequest) -> Context | HttpResponseBase:
    """A new topic."""
    form = TopicForm(posted(request), initial={"name": request.GET.get("name", "")})
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"]
        queues = form.cleaned_data["queues"]
        if act(
            request,
            lambda: topics.declare_topic(name=name, queues=queues, by=acting(request)),
            done=f"The topic {name} is there.",
        ):
            return redirect("topic", name)
    return confirm(
        title="New topic",
        sentence="Programs send to it by its name; groups subscribe to it.",
        button="Make the topic",
        back=reverse("topics"),
        trail=[("Topics", reverse("topics"))],
        form=form,
    )


@page("console/confirm.html", permission="queues.change_topic")
def topic_change_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """More queues for a topic."""
    topic = get_topic(name)
    form = WidenForm(posted(request), initial={"queues": topic.queues})
    if request.method == "POST" and form.is_valid():
        queues = form.cleaned_data["queues"]
        if act(
            request,
            lambda: topics.declare_topic(name=name, queues=queues, by=acting(request)),
            done=f"{name} has {queues} queues.",
        ):
            return redirect("topic", name)
    return confirm(
        title="More queues",
        sentence="Messages are spread over more queues from now on. There can never be fewer: "
        "consumers know the old ones.",
        button="Change it",
        back=reverse("topic", args=[name]),
        trail=_trail(name),
        form=form,
    )


@page("console/confirm.html", permission="queues.delete_topic")
def topic_delete_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Delete a topic, with what waits for it."""
    get_topic(name)
    waiting = due_load(topic=name).waiting
    if request.method == "POST":
        begun: list[Begun | None] = []
        if act(
            request,
            lambda: begun.append(
                topics.delete_topic(name=name, purge=waiting > 0, by=acting(request))
            ),
            done=f"{name} is deleted; {waiting:,} waiting messages are cancelled.",
        ):
            return follow(begun[0], "topics")
        return redirect("topic", name)
    return confirm(
        title=f"Delete {name}?",
        sentence="Nothing can be sent to it any more, what waits for it is cancelled, and what was "
        "delivered can no longer be received. A topic made anew under this name begins empty.",
        button="Delete the topic",
        back=reverse("topic", args=[name]),
        trail=_trail(name),
        danger=True,
        facts=[
            ("Waiting, to be cancelled", f"{waiting:,}"),
            ("Groups that subscribe", ", ".join(g.name for g in groups_of_topic(name)) or "none"),
        ],
    )


@page("console/confirm.html", permission="queues.delete_topic")
def topic_purge_page(request: HttpRequest, name: str) -> Context | HttpResponseBase:
    """Cancel what waits for a topic."""
    get_topic(name)
    waiting = due_load(topic=name).waiting
    if request.method == "POST":
        begun: list[Begun | None] = []
        act(
            request,
            lambda: begun.append(topics.cancel_waiting(name, by=acting(request))),
            done=f"What waited for {name} is cancelled.",
            action="topic.purge",
            subject=name,
            detail={"waiting": waiting},
        )
        return follow(begun[0] if begun else None, "topic", name)
    return confirm(
        title=f"Cancel all that waits for {name}?",
        sentence="No one will receive these messages. The topic itself, and what was delivered to "
        "it, stays.",
        button="Cancel what waits",
        back=reverse("topic", args=[name]),
        trail=_trail(name),
        danger=True,
        facts=[("Waiting", f"{waiting:,}")],
    )


def _trail(name: str) -> list[tuple[str, str]]:
    return [("Topics", reverse("topics")), (name, reverse("topic", args=[name]))]


def _bounds(bounds: QueueBounds) -> dict[str, int]:
    begin, end = bounds.min_offset, bounds.max_offset
    return {"min_offset": begin, "max_offset": end, "kept": end - begin}


def _kept(name: str) -> int:
    store = wires.wiring().get_store()
    bounds = [store.queue_bounds(name, queue_id) for queue_id in store.queue_ids(name)]
    return sum(one.max_offset - one.min_offset for one in bounds)
