"""Topics and groups: declare, look, list, pause, reset, delete."""

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

import msgspec
from django.http import HttpResponse

from queues.api.answers import answer, no_content
from queues.api.endpoint import CONSUME, INSPECT, MANAGE, Call, endpoint
from queues.api.operationviews import accepted
from queues.api.shapes.control import (
    Custom,
    Exponential,
    GroupAnswer,
    GroupList,
    GroupRequest,
    KeptPolicy,
    KeptSubscription,
    Levels,
    PurgeQuery,
    QueueStart,
    ResetAnswer,
    ResetRequest,
    TopicAnswer,
    TopicList,
    TopicRequest,
)
from queues.api.shapes.messages import NoFields, PageQuery
from queues.api.shapes.operations import OperationAnswer
from queues.api.tokens import make_token, page_size_of, read_token
from queues.api.views import ApiView
from queues.codes import Code
from queues.limits import RETRIES_DEFAULT
from queues.moments import format_moment
from queues.selectors import control
from queues.selectors.control import GroupView, TopicView
from queues.services import groups, topics
from queues.services.groups import GroupPlan
from queues.store.consuming import Subscription

_NAMES = (Code.NAME_INVALID, Code.NAME_RESERVED)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


class TopicsView(ApiView):
    """`/topics`."""

    @endpoint(
        "List topics",
        scopes=(INSPECT,),
        query=PageQuery,
        gives={200: TopicList},
        codes=(Code.PAGE_TOKEN_INVALID,),
    )
    def get(self, call: Call) -> HttpResponse:
        seen = control.cache.current().topics
        allowed = (topic for topic in seen.values() if call.caller.topics.allow(topic.name))
        page, token = _page("topics", allowed, call.query)
        return answer(TopicList([_tell_topic(topic) for topic in page], token))


class OneTopicView(ApiView):
    """`/topics/{topic}`."""

    @endpoint(
        "Make a topic, or give it more queues",
        scopes=(MANAGE,),
        takes=TopicRequest,
        body_optional=True,
        gives={200: TopicAnswer, 201: TopicAnswer},
        codes=(Code.QUEUES_FEWER, Code.OUT_OF_BOUNDS, *_NAMES),
    )
    def put(self, call: Call, topic: str) -> HttpResponse:
        call.caller.require_topic(topic)
        declared = topics.declare_topic(name=topic, queues=call.body.queues, by=call.caller.by)
        status = 201 if declared.created else 200
        return answer(_tell_topic(declared.topic), status=status)

    @endpoint(
        "Look at a topic",
        scopes=(INSPECT,),
        gives={200: TopicAnswer},
        codes=(Code.TOPIC_NOT_FOUND,),
    )
    def get(self, call: Call, topic: str) -> HttpResponse:
        call.caller.require_topic(topic)
        return answer(_tell_topic(control.get_topic(topic)))

    @endpoint(
        "Delete a topic",
        scopes=(MANAGE,),
        query=PurgeQuery,
        gives={202: OperationAnswer, 204: None},
        codes=(Code.TOPIC_NOT_FOUND, Code.NOT_EMPTY),
    )
    def delete(self, call: Call, topic: str) -> HttpResponse:
        call.caller.require_topic(topic)
        operation = topics.delete_topic(name=topic, purge=call.query.purge, by=call.caller.by)
        return no_content() if operation is None else accepted(operation)


class GroupsView(ApiView):
    """`/groups`."""

    @endpoint(
        "List groups",
        scopes=(INSPECT, CONSUME),
        query=PageQuery,
        gives={200: GroupList},
        codes=(Code.PAGE_TOKEN_INVALID,),
    )
    def get(self, call: Call) -> HttpResponse:
        seen = control.cache.current().groups
        allowed = (group for group in seen.values() if call.caller.groups.allow(group.name))
        page, token = _page("groups", allowed, call.query)
        return answer(GroupList([_tell_group(group) for group in page], token))


class OneGroupView(ApiView):
    """`/groups/{group}`."""

    @endpoint(
        "Make or replace a group",
        scopes=(MANAGE,),
        takes=GroupRequest,
        gives={200: GroupAnswer, 201: GroupAnswer},
        codes=(
            *_NAMES,
            Code.OUT_OF_BOUNDS,
            Code.TAG_INVALID,
            Code.DELAY_INVALID,
            Code.DELAY_OUT_OF_RANGE,
            Code.GROUP_IN_FLIGHT,
        ),
    )
    def put(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        for one in call.body.subscriptions:
            call.caller.require_topic(one.topic)
        declared = groups.declare_group(name=group, plan=_plan(call.body), by=call.caller.by)
        return answer(_tell_group(declared.group), status=201 if declared.created else 200)

    @endpoint(
        "Look at a group",
        scopes=(INSPECT, CONSUME),
        gives={200: GroupAnswer},
        codes=(Code.GROUP_NOT_FOUND,),
    )
    def get(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        return answer(_tell_group(control.get_group(group)))

    @endpoint(
        "Delete a group",
        scopes=(MANAGE,),
        query=PurgeQuery,
        gives={202: OperationAnswer, 204: None},
        codes=(Code.GROUP_NOT_FOUND, Code.NOT_EMPTY),
    )
    def delete(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        operation = groups.delete_group(name=group, purge=call.query.purge, by=call.caller.by)
        return no_content() if operation is None else accepted(operation)


class PauseView(ApiView):
    """`/groups/{group}/pause`."""

    @endpoint(
        "Pause a group",
        scopes=(MANAGE,),
        takes=NoFields,
        body_optional=True,
        gives={200: GroupAnswer},
        codes=(Code.GROUP_NOT_FOUND,),
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        return answer(_tell_group(groups.set_paused(name=group, paused=True, by=call.caller.by)))


class ResumeView(ApiView):
    """`/groups/{group}/resume`."""

    @endpoint(
        "Let a paused group go on",
        scopes=(MANAGE,),
        takes=NoFields,
        body_optional=True,
        gives={200: GroupAnswer},
        codes=(Code.GROUP_NOT_FOUND,),
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        return answer(_tell_group(groups.set_paused(name=group, paused=False, by=call.caller.by)))


class ResetView(ApiView):
    """`/groups/{group}/reset`."""

    @endpoint(
        "Let a group begin anew at a time, the beginning or the end",
        scopes=(MANAGE,),
        takes=ResetRequest,
        gives={200: ResetAnswer},
        codes=(Code.GROUP_NOT_FOUND, Code.LEDGER_BUSY),
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        done = groups.reset_group(
            name=group,
            to=call.body.to,
            cancel_retries=call.body.retries == "cancel",
            by=call.caller.by,
        )
        queues = [QueueStart(*start) for start in done.starts]
        return answer(ResetAnswer(group=group, queues=queues, cancelled_retries=done.cancelled))


def _page(listing: str, found: Iterable[Named], query: PageQuery) -> tuple[list[Named], str]:
    """The entries after the token's name, and the token of the rest."""
    size = page_size_of(query.page_size)
    position = read_token([listing], query.page_token)
    after = "" if position is None else str(position[0])
    rest = sorted((one for one in found if one.name > after), key=lambda one: one.name)
    token = make_token([listing], [rest[size - 1].name]) if len(rest) > size else ""
    return rest[:size], token


def _plan(request: GroupRequest) -> GroupPlan:
    return GroupPlan(
        subscriptions=[
            Subscription(one.topic, "*" if one.tags is None else one.tags)
            for one in request.subscriptions
        ],
        mode=request.mode or "clustering",
        ordered=bool(request.ordered),
        max_retries=RETRIES_DEFAULT if request.max_retries is None else request.max_retries,
        retry_queues=1 if request.retry_queues is None else request.retry_queues,
        retry_policy=_fill(request.retry_policy),
        start_from=request.start_from or "latest",
    )


def _tell_topic(topic: TopicView) -> TopicAnswer:
    return TopicAnswer(
        topic=topic.name,
        queues=topic.queues,
        created_at=format_moment(topic.created_ms),
        created_at_ms=topic.created_ms,
    )


def _tell_group(group: GroupView) -> GroupAnswer:
    return GroupAnswer(
        group=group.name,
        subscriptions=[KeptSubscription(one.topic, one.tags) for one in group.subscriptions],
        mode=group.mode,
        ordered=group.ordered,
        max_retries=group.max_retries,
        retry_queues=group.retry_queues,
        retry_policy=msgspec.convert(group.retry_policy, KeptPolicy),
        start_from=group.start_from,
        paused=group.paused,
        created_at=format_moment(group.created_ms),
        created_at_ms=group.created_ms,
    )


def _fill(policy: Levels | Exponential | Custom | None) -> dict[str, Any]:
    """The policy as it is kept: what was absent or null has its default."""
    given = msgspec.to_builtins(Levels() if policy is None else policy)
    known = {name: value for name, value in given.items() if value is not None}
    filled: dict[str, Any] = msgspec.to_builtins(msgspec.convert(known, KeptPolicy))
    return filled
