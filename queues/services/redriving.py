"""Redriving as an operation: many dead letters, at a rate, with a stop when too many fail again.

Where it is, the dead letters themselves tell: one that was redriven at or after the time at which
the operation was asked for counts as done. So a run that is taken up after a `kill -9` drives none
twice, also with `again`.

A redriven message *failed again* once its first attempt failed: it is retried, or dead again. What
is driven faster than it is consumed fails too late for a stop, so a stop goes with a rate.
"""

import threading
import time
from collections import Counter
from typing import Any

from queues import wires
from queues.selectors.control import GroupView, get_group
from queues.selectors.deadletters import LetterFilter
from queues.services.deadletters import Selection, drive_one, selected
from queues.store.chainlookup import DeadLetter
from queues.wires import Progress

#: Results of single messages that the operation's own result lists.
RESULTS_MAX = 1000
#: How long one sleep lasts at most, so that an abort is heard of.
_SLEEP_S_MAX = 0.5
#: Redriven messages that are looked at for failures at a time.
_WATCHED_MAX = 1000


class RedriveRunner:
    """Carries redrives out."""

    kind = "deadletters.redrive"
    at_once = 2

    def run(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Drive what the request selects, until it ends, fails too often, or is stopped."""
        return _Run(request, progress).run()


class _Run:
    """One run of one operation."""

    def __init__(self, request: dict[str, Any], progress: Progress) -> None:
        self._request, self._progress = request, progress
        self._group: GroupView = get_group(request["group"])
        self._asked_ms: int = request["asked_ms"]
        self._rate: float | None = request["messages_per_second"]
        self._stop_after: int | None = request["stop_after_failures"]
        self._never = threading.Event()
        self._counts: Counter[str] = Counter()
        self._results: list[dict[str, str]] = []
        #: Ids of what was driven, and has neither failed nor been acknowledged yet.
        self._watched: list[str] = []
        self._failed = 0
        #: What this run drove itself: an earlier one's kept its pace then.
        self._driven = 0

    def run(self) -> dict[str, Any]:
        """See `RedriveRunner.run`."""
        ids, total, done = self._ids(), None, 0
        total = len(ids)
        stopped = False
        began_s = time.monotonic()
        for message_id in ids:
            if self._progress.aborted:
                break
            if self._failed_too_often():
                stopped = True
                break
            outcome = self._drive(message_id)
            self._counts[outcome] += 1
            if len(self._results) < RESULTS_MAX:
                self._results.append({"id": message_id, "outcome": outcome})
            done += 1
            self._progress.report(done, total)
            self._keep_pace(began_s)
        self._progress.report(done, total)
        failed = self._failed + self._count_failed()
        return {
            **{name: self._counts[name] for name in _OUTCOMES},
            "failed_again": failed,
            "stopped": stopped,
            "results": self._results,
        }

    def _ids(self) -> list[str]:
        """What was meant when it was asked for, also what an earlier run drove."""
        named = self._request["ids"]
        if named is not None:
            return list(dict.fromkeys(named))
        selection = Selection(matching=LetterFilter(**self._request["filter"]))
        found = selected(self._group.name, selection, redriven=True, died_until_ms=self._asked_ms)
        again = self._request["again"]
        return [
            letter.id
            for letter in found
            if again or letter.redriven_ms is None or self._is_done(letter)
        ]

    def _is_done(self, letter: DeadLetter) -> bool:
        return letter.redriven_ms is not None and letter.redriven_ms >= self._asked_ms

    def _drive(self, message_id: str) -> str:
        lookup = wires.wiring().get_store().chains.lookup
        letter = lookup.find_letter(self._group.name, message_id)
        if letter is not None and letter.died_ms > self._asked_ms:
            return "redriven"  # It died again since.
        if letter is not None and self._is_done(letter):
            self._watched.append(message_id)
            return "redriven"
        again, by = self._request["again"], self._request["by"]
        outcome = drive_one(self._group, message_id, by=by, again=again)
        if outcome == "redriven":
            self._driven += 1
            self._watched.append(message_id)
        return outcome

    def _keep_pace(self, began_s: float) -> None:
        """Sleep until the next message may be driven."""
        if self._rate is None:
            return
        next_s = began_s + self._driven / self._rate
        while (left_s := next_s - time.monotonic()) > 0 and not self._progress.aborted:
            self._never.wait(min(left_s, _SLEEP_S_MAX))

    def _failed_too_often(self) -> bool:
        if self._stop_after is None:
            return False
        self._failed += self._count_failed()
        return self._failed >= self._stop_after

    def _count_failed(self) -> int:
        """How many of those watched failed since; they are watched no longer."""
        lookup = wires.wiring().get_store().chains.lookup
        failed, open_ones = 0, []
        for message_id in self._watched[:_WATCHED_MAX]:
            state = lookup.state(self._group.name, message_id)
            if state is None or state.state == "acked":
                continue
            if state.failed:
                failed += 1
            elif state.alive:
                open_ones.append(message_id)
        self._watched = open_ones + self._watched[_WATCHED_MAX:]
        return failed


_OUTCOMES = ("redriven", "already_redriven", "in_progress", "not_found")
