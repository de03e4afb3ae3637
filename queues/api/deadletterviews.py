"""Dead letters: what a group gave up, looked at, counted by reason, exported, discarded."""

from typing import Any

import msgspec
from django.http import HttpResponse, StreamingHttpResponse

from queues.api.answers import answer
from queues.api.codec import moment_in_query
from queues.api.deadletterforms import FORMS, written
from queues.api.endpoint import CONSUME, INSPECT, Call, endpoint
from queues.api.redriveviews import selection_of
from queues.api.shapes.deadletters import (
    DeadLetterDetail,
    DeadLetterList,
    DeadLetterQuery,
    DeadLetterSummary,
    Discarded,
    DiscardQuery,
    Purged,
    PurgeRequest,
    ReasonList,
    ReasonShown,
    ReasonsQuery,
)
from queues.api.tellingdeath import summary_fields, tell_letter
from queues.api.tokens import make_token, page_size_of, read_token
from queues.api.views import ApiView
from queues.codes import Code
from queues.moments import format_moment
from queues.selectors import control
from queues.selectors.deadletters import (
    LetterFilter,
    ReasonCount,
    get_letter,
    group_reasons,
    list_letters,
    matching,
)
from queues.services import deadletters
from queues.store.limits import DUE_MS_MAX

_CODES = (Code.GROUP_NOT_FOUND, Code.DEAD_LETTER_NOT_FOUND)
_STORE_CODES = (Code.STORE_FULL, Code.STORE_CLOSING, Code.STORE_FAILED)


class DeadLettersView(ApiView):
    """`/groups/{group}/dead-letters`."""

    @endpoint(
        "List dead letters, newest first, or export them, oldest first",
        scopes=(CONSUME, INSPECT),
        query=DeadLetterQuery,
        gives={200: DeadLetterList},
        forms=tuple(FORMS.values()),
        codes=(Code.GROUP_NOT_FOUND, Code.PAGE_TOKEN_INVALID, Code.DELAY_INVALID),
    )
    def get(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        control.get_group(group)
        query: DeadLetterQuery = call.query
        wanted = _filter(query)
        if query.format in FORMS:
            return _export(group, wanted, query.format)
        listing = ["dead-letters", group, *_values(query)]
        position = read_token(listing, query.page_token)
        page = list_letters(
            group,
            wanted,
            after=None if position is None else (position[0], position[1]),
            limit=page_size_of(query.page_size),
        )
        return answer(
            DeadLetterList(
                items=[DeadLetterSummary(**summary_fields(letter)) for letter in page.letters],
                next_page_token="" if page.last is None else make_token(listing, page.last),
                count=page.count if page.exact else msgspec.UNSET,
                count_at_least=msgspec.UNSET if page.exact else page.count,
            )
        )


class ReasonsView(ApiView):
    """`/groups/{group}/dead-letters/reasons`."""

    @endpoint(
        "Count dead letters by reason",
        scopes=(CONSUME, INSPECT),
        query=ReasonsQuery,
        gives={200: ReasonList},
        codes=(Code.GROUP_NOT_FOUND, Code.DELAY_INVALID),
    )
    def get(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        control.get_group(group)
        counts, exact = group_reasons(group, _filter(call.query))
        return answer(ReasonList(items=[_tell_reason(one) for one in counts], exact=exact))


class OneDeadLetterView(ApiView):
    """`/groups/{group}/dead-letters/{id}`."""

    @endpoint(
        "Look at a dead letter",
        scopes=(CONSUME, INSPECT),
        gives={200: DeadLetterDetail},
        codes=_CODES,
    )
    def get(self, call: Call, group: str, message_id: str) -> HttpResponse:
        call.caller.require_group(group)
        control.get_group(group)
        return answer(tell_letter(get_letter(group, message_id)))

    @endpoint(
        "Discard a dead letter",
        scopes=(CONSUME,),
        query=DiscardQuery,
        gives={200: Discarded},
        codes=(*_CODES, *_STORE_CODES),
    )
    def delete(self, call: Call, group: str, message_id: str) -> HttpResponse:
        call.caller.require_group(group)
        deadletters.discard(
            group=control.get_group(group),
            message_id=message_id,
            by=call.caller.by,
            reason=call.query.reason,
        )
        return answer(Discarded())


class PurgeView(ApiView):
    """`/groups/{group}/dead-letters/purge`."""

    @endpoint(
        "Discard many dead letters",
        scopes=(CONSUME,),
        takes=PurgeRequest,
        gives={200: Purged},
        codes=(
            Code.GROUP_NOT_FOUND,
            Code.FILTER_REQUIRED,
            Code.OUT_OF_BOUNDS,
            Code.DELAY_INVALID,
            *_STORE_CODES,
        ),
    )
    def post(self, call: Call, group: str) -> HttpResponse:
        call.caller.require_group(group)
        found = control.get_group(group)
        selection = selection_of(call.body)
        deadletters.check_selection(selection)
        by = call.caller.by
        return answer(Purged(deadletters.purge(group=found, selection=selection, by=by)))


def _export(group: str, wanted: LetterFilter, form: str) -> HttpResponse:
    response = StreamingHttpResponse(
        written(matching(group, wanted), form), content_type=f"{FORMS[form]}; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="dead-letters-{group}.{form}"'
    # What the server needs of an answer, it has; Django gives the two no common class.
    return response  # type: ignore[return-value]


def _filter(query: DeadLetterQuery | ReasonsQuery) -> LetterFilter:
    after_ms = moment_in_query("died_after", query.died_after)
    before_ms = moment_in_query("died_before", query.died_before)
    return LetterFilter(
        topic=query.topic,
        key=query.key,
        reason=getattr(query, "reason", None),
        died_from_ms=0 if after_ms is None else max(0, after_ms),
        died_before_ms=DUE_MS_MAX if before_ms is None else max(0, min(before_ms, DUE_MS_MAX)),
    )


def _values(query: DeadLetterQuery) -> list[Any]:
    values = msgspec.to_builtins(query)
    return [[name, value] for name, value in values.items() if not name.startswith("page_")]


def _tell_reason(one: ReasonCount) -> ReasonShown:
    return ReasonShown(
        reason=one.reason,
        count=one.count,
        first_died_at=format_moment(one.first_died_ms),
        first_died_at_ms=one.first_died_ms,
        last_died_at=format_moment(one.last_died_ms),
        last_died_at_ms=one.last_died_ms,
        sample_id=one.sample_id,
    )
