"""Chains: how a failed message goes on in its group, from attempt to attempt and to its end.

======  ==================  ========================================================================
letter  link                settles
======  ==================  ========================================================================
``A``   a retry, waiting    the ledger entry of the attempt that failed
``H``   a retry, handed     the waiting record's unit, as with every message (`handover`)
``D``   a dead letter       the ledger entry of the attempt that failed; the former dead letter, if
                            the message was redriven
``X``   a redrive           the dead letter's unit; it lies in the retry topic at once
======  ==================  ========================================================================

Each link is one record, and what it continues is settled by dispatching it. So a message has one
chain a group, whatever dies: a link is in the log and its forerunner is settled, or neither.

A waiting retry is cancelled and moved as every message is, by its own unit's settled word.
"""

import json
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from queues.store.batch import CRC_BYTES, ID_AT, ID_BYTES, LEADING_BYTES, Batch
from queues.store.chainlookup import ChainLookup, DeadLetter
from queues.store.chaintail import ChainTail, Death, Failure, begin_tail, split_own
from queues.store.changes import Changes
from queues.store.encode import Link
from queues.store.held import remains, without_by
from queues.store.limits import HOLD_BYTES_MAX, HOLD_RECORDS_MAX
from queues.store.lookup import Lookup
from queues.store.marks import LedgerMark
from queues.store.messages import Decision, MessageView
from queues.store.names import DEAD_LETTER_PREFIX, RETRY_PREFIX
from queues.store.parts import Parts
from queues.store.retryrules import Wait
from queues.store.settings import StoreSettings

#: Each round that is lost was won by someone else.
_ROUNDS_MAX = 100
#: Dead letters that are given up in one hold.
_DISCARDS_MAX = 200


class Going(NamedTuple):
    """A message whose attempt failed."""

    #: The record that was handed out, and where it lies in the log.
    raw: bytes
    log_offset: int
    #: The ledger entry that it was handed out by.
    mark: LedgerMark
    failure: Failure
    wait: Wait
    #: Queues of the group's retry topic.
    retry_queues: int


class Gone(NamedTuple):
    """Where it went."""

    log_offset: int
    #: When the next attempt is due, or when it died, ms.
    due_ms: int
    dead: bool


class Redriven(NamedTuple):
    """What became of a dead letter that was to be driven again."""

    #: ``redriven``, ``already_redriven``, ``in_progress`` or ``not_found``.
    outcome: str
    letter: DeadLetter | None = None


class Chains:
    """The chains of one store."""

    def __init__(
        self, parts: Parts, changes: Changes, lookup: Lookup, settings: StoreSettings
    ) -> None:
        self._changes, self._clock = changes, parts.clock
        self._appender, self._encoder = changes.appender, changes.encoder
        #: Finds chains and dead letters.
        self.lookup = ChainLookup(parts, lookup, settings.dead_letter_retention_ms)
        #: In sync mode, returns after the flush that covers the log up to an offset.
        self.settle = changes.settle_flush

    def mend(self) -> None:
        """Finish or undo the write in which a process died: it may settle what is looked at."""
        with self._appender.hold():
            pass

    # -- on from a ledger entry -----------------------------------------------------------------

    def go_on(self, goings: Sequence[Going]) -> Iterator[list[tuple[Going, Gone]]]:
        """Write each message's next link, hold by hold; the results of each hold as it is done.

        The caller holds the ledgers of the marks, and notes each hold's results before it asks for
        the next. Raises `StoreFull` or `StoreFailed` with nothing of that hold written.
        """
        again = {id(going) for going in goings if self._died_before(going)}
        for run in _runs(goings, again):
            yield [self._die_again(run[0])] if id(run[0]) in again else self._write(run)

    def _died_before(self, going: Going) -> bool:
        """Whether it dies and has a dead letter already: it was redriven, or its group reset."""
        if not going.wait.dead:
            return False
        message_id = _id_of(going.raw)
        return self.lookup.find_letter(going.mark.group, message_id, kept_only=False) is not None

    def _write(self, run: Sequence[Going]) -> list[tuple[Going, Gone]]:
        batch, now_ms, dead = Batch(), self._clock.now_ms(), run[0].wait.dead
        for going in run:
            self._encoder.link(batch, _link(going, now_ms), None, now_ms=now_ms)
        counter = "dead" if dead else "retried"
        written = self._appender.write(batch, counter, privileged=True).entries
        return [
            (going, Gone(int(at), int(due_ms), dead))
            for going, at, due_ms in zip(run, written.log_offsets, written.dues, strict=True)
        ]

    def _die_again(self, going: Going) -> tuple[Going, Gone]:
        """Write the dead letter of a message that has one; it replaces the former one."""
        message_id = _id_of(going.raw)
        for _ in range(_ROUNDS_MAX):
            former = self.lookup.find_letter(going.mark.group, message_id, kept_only=False)
            source = None if former is None else former.source
            batch, now_ms = Batch(), self._clock.now_ms()
            link = _link(going, now_ms)
            if former is not None:
                link = link._replace(former=former.log_offset)
            self._encoder.link(batch, link, source, now_ms=now_ms)
            written = self._appender.write(batch, "dead", privileged=True).entries
            if len(written.sizes):
                return going, Gone(int(written.log_offsets[0]), int(written.dues[0]), dead=True)
        raise AssertionError(f"the dead letter of {message_id} is changed again and again")

    def newest_link(self, group: str, log_offset: int) -> int | None:
        """Where the newest link of a chain lies, given one of its links; None if it is over.

        That it is over is looked at again under the append lock: the index is read without it.
        """
        newest = self.lookup.newest_alive(group, log_offset)
        if newest is None:
            with self._appender.hold():
                newest = self.lookup.newest_alive(group, log_offset)
        return newest

    def read_link(self, log_offset: int) -> bytes | None:
        """The record of a link; None if it is gone."""
        return self.lookup.read_link(log_offset)

    # -- waiting retries ------------------------------------------------------------------------

    def find_retry(self, group: str, message_id: str) -> MessageView | None:
        """What is known of the message's newest retry in the group."""
        return self._changes.find(message_id, group)

    def cancel_retry(
        self, group: str, message_id: str, *, by: str | None, reason: str | None = None
    ) -> Decision:
        """``cancelled``, ``already_cancelled``, ``too_late`` or ``not_found``."""
        return self._changes.cancel(message_id, by=by, reason=reason, group=group)

    def move_retry(
        self, group: str, message_id: str, due_ms: int, *, by: str | None,
        expected_version: int | None = None,
    ) -> Decision:  # fmt: skip
        """``moved``, ``too_late``, ``cancelled``, ``version_mismatch`` or ``not_found``."""
        return self._changes.move(
            message_id, due_ms, by=by, expected_version=expected_version, group=group
        )

    # -- dead letters ---------------------------------------------------------------------------

    def redrive(
        self, group: str, message_id: str, *, by: str, retry_queues: int, again: bool = False
    ) -> Redriven:
        """Let a dead letter be tried from attempt 1 again; it stays, marked."""
        for _ in range(_ROUNDS_MAX):
            letter = self.lookup.find_letter(group, message_id)
            if letter is None:
                return Redriven("not_found")
            if letter.redriven_ms is not None:
                if self.lookup.is_alive(group, message_id):
                    return Redriven("in_progress", letter)
                if not again:
                    return Redriven("already_redriven", letter)
            now_ms, batch = self._clock.now_ms(), Batch()
            link = _redrive_link(letter, now_ms, by, retry_queues)
            self._encoder.link(batch, link, letter.source, now_ms=now_ms)
            written = self._appender.write(batch, "redriven", privileged=True)
            self.settle(written.end)
            if len(written.entries.sizes):
                return Redriven("redriven", letter)
        raise AssertionError(f"the dead letter of {message_id} is changed again and again")

    def discard(self, group: str, message_id: str, *, by: str, reason: str | None = None) -> bool:
        """Give a dead letter up; False if there is none."""
        for _ in range(_ROUNDS_MAX):
            letter = self.lookup.find_letter(group, message_id)
            if letter is None:
                return False
            batch = Batch()
            self._journal_discard(batch, letter, by, reason, self._clock.now_ms())
            written = self._appender.write(batch, "cancelled", privileged=True)
            self.settle(written.end)
            if len(written.entries.sizes):
                return True
        raise AssertionError(f"the dead letter of {message_id} is changed again and again")

    def discard_all(self, group: str, *, by: str, reason: str | None = None) -> int:
        """Give up every dead letter of the group; return how many."""
        units = self.lookup.letters(group).units.tolist()
        return sum(
            self.discard_units(group, units[first : first + _DISCARDS_MAX], by=by, reason=reason)
            for first in range(0, len(units), _DISCARDS_MAX)
        )

    def discard_units(
        self, group: str, units: Sequence[int], *, by: str, reason: str | None = None
    ) -> int:
        """Give up the dead letters of some units in one hold; return how many still were there."""
        found = [self.lookup.letter_at(group, unit) for unit in units]
        batch, now_ms = Batch(), self._clock.now_ms()
        for letter in found:
            if letter is not None:
                self._journal_discard(batch, letter, by, reason, now_ms)
        if not batch.rows:
            return 0
        written = self._appender.write(batch, "cancelled", privileged=True)
        self.settle(written.end)
        return len(written.entries.sizes)

    def _journal_discard(
        self, batch: Batch, letter: DeadLetter, by: str, reason: str | None, now_ms: int
    ) -> None:
        held = remains(letter.died_ms, DEAD_LETTER_PREFIX + letter.group)
        self._encoder.journal(
            batch, held._replace(unique_id=letter.id.encode(), kind=b"I"), letter.source,
            letter.log_offset, b"C", event="discarded", by=by,
            body=json.dumps({"reason": reason} if reason else {}).encode(), now_ms=now_ms,
        )  # fmt: skip


class _Record(NamedTuple):
    """The parts of a record that was handed out."""

    body: bytes
    flag: int
    born_ms: int
    reconsume_times: int
    unique_id: bytes
    own: bytes


def _take_apart(raw: bytes) -> _Record:
    body_end = 88 + int.from_bytes(raw[84:88], "big")
    at = body_end + 3 + raw[body_end]
    return _Record(
        raw[88:body_end],
        int.from_bytes(raw[16:20], "big", signed=True),
        int.from_bytes(raw[40:48], "big"),
        int.from_bytes(raw[72:76], "big"),
        raw[at + ID_AT : at + ID_AT + ID_BYTES],
        raw[at + LEADING_BYTES : len(raw) - CRC_BYTES],
    )


def _id_of(raw: bytes) -> str:
    return _take_apart(raw).unique_id.decode()


def _link(going: Going, now_ms: int) -> Link:
    """The retry or dead letter of a message whose attempt failed."""
    record, mark, wait = _take_apart(going.raw), going.mark, going.wait
    own, tail = split_own(record.own)
    if tail is None:
        tail = begin_tail(mark.topic, mark.queue_id, mark.offset, going.log_offset)
    retry_queue = going.failure.attempt % going.retry_queues
    return Link(
        letter=b"D" if wait.dead else b"A",
        at=going.log_offset,
        topic=(DEAD_LETTER_PREFIX if wait.dead else RETRY_PREFIX) + mark.group,
        queue_id=0 if wait.dead else (mark.offset + retry_queue) % going.retry_queues,
        body=record.body,
        flag=record.flag,
        born_ms=record.born_ms,
        reconsume_times=going.failure.attempt,
        unique_id=record.unique_id,
        own=own,
        origin=tail._replace(failures=(*tail.failures, going.failure)),
        mark=mark,
        level=wait.level,
        due_ms=None if wait.level or wait.dead else now_ms + wait.delay_ms,
    )


def _redrive_link(letter: DeadLetter, now_ms: int, by: str, retry_queues: int) -> Link:
    """What goes to the retry topic: attempts counted anew, one more death in its lineage."""
    record = _take_apart(letter.raw)
    own, tail = split_own(record.own)
    tail = tail or ChainTail(letter.topic, "", 0, 0)
    death = Death(letter.died_ms, letter.attempts, letter.reason, now_ms, by)
    return Link(
        letter=b"X",
        at=letter.log_offset,
        topic=RETRY_PREFIX + letter.group,
        queue_id=letter.source.unit % retry_queues,
        body=record.body,
        flag=record.flag,
        born_ms=record.born_ms,
        reconsume_times=0,
        unique_id=record.unique_id,
        own=without_by(own) + b"PD_BY\x01%b\x02" % by.encode(),
        origin=tail._replace(failures=(), lineage=(*tail.lineage, death)),
    )


def renewal_of(raw: bytes, log_offset: int, topic: str) -> Link:
    """A dead letter's record as it is appended again."""
    record = _take_apart(raw)
    own, tail = split_own(record.own)
    return Link(
        letter=b"R",
        at=log_offset,
        topic=topic,
        queue_id=0,
        body=record.body,
        flag=record.flag,
        born_ms=record.born_ms,
        reconsume_times=record.reconsume_times,
        unique_id=record.unique_id,
        own=own,
        origin=tail or ChainTail("", "", 0, 0),
    )


def _runs(goings: Sequence[Going], again: Container[int]) -> Iterator[Sequence[Going]]:
    """Cut into what one hold takes; dead ones apart, those that die `again` (ids) one by one."""
    run: list[Going] = []
    total = 0
    for going in sorted(goings, key=lambda one: one.wait.dead):
        alone = id(going) in again
        full = len(run) == HOLD_RECORDS_MAX or total + len(going.raw) > HOLD_BYTES_MAX
        if run and (alone or full or run[0].wait.dead != going.wait.dead):
            yield run
            run, total = [], 0
        run.append(going)
        total += len(going.raw)
        if alone:
            yield run
            run, total = [], 0
    if run:
        yield run
