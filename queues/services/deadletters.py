"""What can be done with dead letters: discard them, purge them, drive them again.

A redrive lets a message be received at once, attempts counted anew; the dead letter stays, marked.
Each is decided at the dead letter's settled word, so one that is stopped half-way is simply asked
for again: what was driven is found to be so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from queues import wires
from queues.codes import Code
from queues.limits import REDRIVE_IDS_MAX, REDRIVEN_AT_ONCE_MAX
from queues.models import Operation
from queues.problems import Problem
from queues.selectors.control import GroupView
from queues.selectors.deadletters import LetterFilter, get_letter, matching
from queues.selectors.messages import is_message_id
from queues.services.audit import record_change
from queues.services.operations import begin
from queues.store.chainlookup import DeadLetter

#: Dead letters that are discarded in one hold of the append lock.
_DISCARDED_AT_ONCE = 200
#: What a dry run shows.
_SAMPLE = 10


@dataclass(frozen=True, slots=True)
class Selection:
    """Which dead letters are meant: these, those that match, or (neither) all."""

    ids: tuple[str, ...] | None = None
    matching: LetterFilter | None = None


@dataclass(frozen=True, slots=True)
class RedriveOptions:
    """How they are driven again."""

    #: Also those that were driven before.
    again: bool = False
    messages_per_second: float | None = None
    #: Stop when so many of them failed again.
    stop_after_failures: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one dead letter."""

    id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Redrive:
    """What became of a redrive: results, or the operation that goes on with it."""

    results: tuple[Outcome, ...] = ()
    operation: Operation | None = None


def discard(*, group: GroupView, message_id: str, by: str, reason: str | None) -> None:
    """Give a dead letter up; raises `dead_letter_not_found`."""
    get_letter(group.name, message_id)
    chains = wires.wiring().get_store().chains
    if not chains.discard(group.name, message_id, by=by, reason=reason):
        raise Problem(Code.DEAD_LETTER_NOT_FOUND)
    _note("deadletter.discard", group, by, {"id": message_id, "reason": reason})


def purge(*, group: GroupView, selection: Selection, by: str) -> int:
    """Give up what is selected; returns how many."""
    discarded = 0
    chains = wires.wiring().get_store().chains
    units: list[int] = []
    for letter in selected(group.name, selection, redriven=True):
        units.append(letter.source.unit)
        if len(units) == _DISCARDED_AT_ONCE:
            discarded += chains.discard_units(group.name, units, by=by)
            units = []
    discarded += chains.discard_units(group.name, units, by=by)
    _note("deadletter.purge", group, by, {"discarded": discarded})
    return discarded


def look_at(*, group: GroupView, selection: Selection, again: bool) -> tuple[int, list[DeadLetter]]:
    """How many a redrive would drive, and some of them."""
    sample: list[DeadLetter] = []
    count = 0
    for letter in selected(group.name, selection, redriven=again):
        count += 1
        if len(sample) < _SAMPLE:
            sample.append(letter)
    return count, sample


def redrive(*, group: GroupView, selection: Selection, options: RedriveOptions, by: str) -> Redrive:
    """Drive what is selected again: at once if it is little, else by an operation."""
    check_selection(selection)
    now_ms = wires.wiring().get_clock().now_ms()
    paced = options.messages_per_second is not None or options.stop_after_failures is not None
    if selection.ids is not None and len(selection.ids) <= REDRIVEN_AT_ONCE_MAX and not paced:
        return Redrive(tuple(_redrive_ids(group, selection.ids, options, by)))
    if not paced:
        ids = _few_ids(group.name, selection, again=options.again)
        if ids is not None:
            return Redrive(tuple(_redrive_ids(group, ids, options, by)))
    request = to_request(group.name, selection, options, by, now_ms)
    return Redrive(operation=begin("deadletters.redrive", request, by=by, now_ms=now_ms))


def check_selection(selection: Selection) -> None:
    """Raise `out_of_bounds` for more ids than one request may name."""
    if selection.ids is not None and not 1 <= len(selection.ids) <= REDRIVE_IDS_MAX:
        raise Problem(Code.OUT_OF_BOUNDS, f"1 to {REDRIVE_IDS_MAX} ids.", pointer="/ids")


def _few_ids(group: str, selection: Selection, *, again: bool) -> list[str] | None:
    """The ids of what is selected; None if they are many."""
    ids: list[str] = []
    for letter in selected(group, selection, redriven=again):
        ids.append(letter.id)
        if len(ids) > REDRIVEN_AT_ONCE_MAX:
            return None
    return ids


def _redrive_ids(
    group: GroupView, ids: Sequence[str], options: RedriveOptions, by: str
) -> Iterator[Outcome]:
    driven = 0
    for one in ids:
        outcome = drive_one(group, one, by=by, again=options.again)
        driven += outcome == "redriven"
        yield Outcome(one, outcome)
    if driven:
        wires.wiring().get_watch().wake(group.name, driven)
    _note("deadletter.redrive", group, by, {"redriven": driven, "of": len(ids)})


def drive_one(group: GroupView, message_id: str, *, by: str, again: bool) -> str:
    """`redriven`, `already_redriven`, `in_progress` or `not_found`."""
    if not is_message_id(message_id):
        return "not_found"
    chains = wires.wiring().get_store().chains
    return chains.redrive(
        group.name, message_id, by=by, retry_queues=group.retry_queues, again=again
    ).outcome


def selected(
    group: str, selection: Selection, *, redriven: bool, died_until_ms: int | None = None
) -> Iterator[DeadLetter]:
    """The dead letters that are meant; of ids those that there are."""
    if selection.ids is None:
        wanted = selection.matching or LetterFilter()
        if died_until_ms is None:
            yield from matching(group, wanted, redriven=redriven)
        else:
            yield from matching(group, wanted, redriven=redriven, died_until_ms=died_until_ms)
        return
    lookup = wires.wiring().get_store().chains.lookup
    for one in dict.fromkeys(selection.ids):
        letter = lookup.find_letter(group, one) if is_message_id(one) else None
        if letter is not None and (redriven or letter.redriven_ms is None):
            yield letter


def to_request(
    group: str, selection: Selection, options: RedriveOptions, by: str, asked_ms: int
) -> dict[str, Any]:
    """A redrive as an operation keeps it."""
    wanted = selection.matching or LetterFilter()
    return {
        "group": group,
        "ids": None if selection.ids is None else list(selection.ids),
        "filter": {
            "topic": wanted.topic,
            "key": wanted.key,
            "reason": wanted.reason,
            "died_from_ms": wanted.died_from_ms,
            "died_before_ms": wanted.died_before_ms,
        },
        "again": options.again,
        "messages_per_second": options.messages_per_second,
        "stop_after_failures": options.stop_after_failures,
        "by": by,
        "asked_ms": asked_ms,
    }


def _note(action: str, group: GroupView, by: str, detail: dict[str, Any]) -> None:
    with transaction.atomic():
        record_change(by=by, action=action, subject=group.name, detail=detail)
