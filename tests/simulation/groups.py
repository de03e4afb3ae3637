"""The model of groups: what they were handed out, what they said of it, and what follows from it.

An *entry* is one message of one queue for one group. What the log says of it (a retry or a dead
letter that goes on from it) is applied as the log is read; what consumers were told is taken down
and judged at the end of an era, which is the time between two crashes of the machine:

* a message is not handed out again after its ack was answered, nor after its chain went on;
* it is handed out again only after a release, or, in a group without a rule, after its lease ended;
* attempts are counted, and a lease is failed for its end only after that;
* each answer about a receipt is one that was true at some time while it was asked.

Power loss takes acks that were not saved by then, and in async mode the log's end.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from queues.store.failing import RAN_OUT
from queues.store.marks import PD_LEDGER
from queues.store.names import DEAD_LETTER_PREFIX, RETRY_PREFIX
from queues.store.record import Record

#: The group that tries again by a rule; the other has none.
RETRYING, PLAIN = "billing", "audit"
GROUPS = (RETRYING, PLAIN)
_SUCCESS = ("acked", "released", "extended", "retrying", "dead")


class Entry(NamedTuple):
    """One message of one queue, for one group."""

    group: str
    topic: str
    queue_id: int
    offset: int


@dataclass(slots=True, eq=False)
class Letter:
    """A dead letter."""

    group: str
    id: str
    #: What it became, and by which record.
    states: list[tuple[int, str]]

    @property
    def now(self) -> str:
        return self.states[-1][1]


@dataclass(slots=True, eq=False)
class Lease:
    """A lease as a consumer was told of it."""

    entry: Entry
    attempt: int
    receipt: str
    until_ms: int
    #: When it was asked for and answered, on the model's own count of events.
    asked: int
    told: int
    #: The highest that the clock ever was by the answer, ms.
    latest_ms: int
    #: The record that was handed out; none for an extension.
    record: bytes | None = None
    said: list["Said"] = field(default_factory=list)

    @property
    def is_void(self) -> bool:
        """Whether it may have been given back or made another."""
        ends = ("extend", "release")
        return any(one.what in ends and one.answer != "expired" for one in self.said)


@dataclass(slots=True, eq=False)
class Said:
    """What a consumer said of a lease."""

    what: str
    asked: int
    told: int | None = None
    #: None: nobody heard the answer, or it was no answer.
    answer: str | None = None
    latest_ms: int = 0
    next_ms: int | None = None


class Groups:
    """What the log and the consumers say of all groups."""

    def __init__(self) -> None:
        #: Where each record of a topic lies: topic, queue, queue offset -> log offset.
        self.places: dict[tuple[str, int, int], int] = {}
        #: Entries whose chain goes on, and where: log offset, letter, due time.
        self.chained: dict[Entry, tuple[int, str, int]] = {}
        #: Dead letters by log offset; a renewed one has two.
        self.letters: dict[int, Letter] = {}
        #: Entries whose ack was answered, and when; and all that anybody tried to acknowledge.
        self.acked: dict[Entry, int] = {}
        self.tried: set[Entry] = set()
        #: The leases of this era, and when what was acknowledged was saved: begun and done.
        self.leases: list[Lease] = []
        self.saves: list[tuple[int, int]] = []
        #: What was answered to those who changed waiting retries, by who asked.
        self.changed: dict[str, str] = {}
        self._event = 0
        self._chained_when: dict[Entry, int] = {}

    def event(self) -> int:
        """The number of the next event."""
        self._event += 1
        return self._event

    # -- told by the log ------------------------------------------------------------------------

    def note_ready(self, record: Record, offset: int) -> None:
        """A record lies in a topic of its own."""
        place = record.topic, record.queue_id, record.queue_offset
        assert place not in self.places, f"two records at {place}"
        self.places[place] = offset

    def link(self, record: Record, offset: int, continued: int, latest_ms: int) -> None:
        """A chain goes on: by a retry, a dead letter, a redrive, a renewal, a discarding."""
        letter = record.properties["PD_FROM"][0]
        if letter in "AD":
            self._settle(record, offset, letter, continued, latest_ms)
        if letter == "D":
            group = record.topic.removeprefix(DEAD_LETTER_PREFIX)
            former = int(record.properties.get("PD_FORMER", -1))
            if former >= 0:
                assert self.letters[former].now == "redriven", (offset, self.letters[former])
                self.letters[former].states.append((offset, "replaced"))
            self.letters[offset] = Letter(group, record.unique_id or "", [(offset, "dead")])
        elif letter != "A":
            told = self.letters[continued]
            assert told.now in ("dead", "redriven"), (letter, offset, told)
            if letter == "R":
                self.letters[offset] = told
            else:
                told.states.append((offset, {"X": "redriven", "C": "discarded"}[letter]))

    def _settle(
        self, record: Record, offset: int, letter: str, continued: int, latest_ms: int
    ) -> None:
        name = PD_LEDGER.decode().rstrip("\1")
        _, queue_id, at, topic = record.properties[name].split(" ", 3)
        held = record.properties.get("REAL_TOPIC", record.topic)
        group = held.removeprefix(RETRY_PREFIX).removeprefix(DEAD_LETTER_PREFIX)
        entry = Entry(group, topic, int(queue_id), int(at))
        assert entry not in self.chained, f"{entry} goes on twice: {self.chained[entry]}, {offset}"
        assert entry not in self.acked, f"{entry} was acknowledged, and goes on at {offset}"
        assert self.places[entry[1:]] == continued, (offset, entry)
        self.chained[entry] = offset, letter, int(record.properties["PD_DUE"])
        self._chained_when[entry] = self.event()
        if f'"{RAN_OUT}"' in record.properties["PD_FAILURES"].rsplit("[", 1)[-1]:
            leases = [one for one in self.leases if one.entry == entry]
            early = bool(leases) and not leases[-1].is_void and leases[-1].until_ms > latest_ms
            assert not early, f"{offset} fails {leases[-1]} before its end, at {latest_ms}"

    # -- told by consumers ----------------------------------------------------------------------

    def note_ack(self, entry: Entry, told: int) -> None:
        """An ack was answered."""
        assert entry not in self.chained, f"{entry} goes on, and was acknowledged"
        self.acked.setdefault(entry, told)

    # -- eras -----------------------------------------------------------------------------------

    def end_era(self, *, power_lost: bool) -> None:
        """The machine crashed: judge what was told, and keep what must survive."""
        self.judge()
        if power_lost:
            self.acked = {
                entry: told
                for entry, told in self.acked.items()
                if any(begun > told for begun, _ in self.saves)
            }
        self.leases.clear()

    def lose(self, cut: int) -> None:
        """The log lost its end."""
        self.places = {place: at for place, at in self.places.items() if at < cut}
        self.chained = {entry: told for entry, told in self.chained.items() if told[0] < cut}
        self.acked = {one: told for one, told in self.acked.items() if one[1:] in self.places}
        self.tried = {one for one in self.tried if one[1:] in self.places}
        self.letters = {at: letter for at, letter in self.letters.items() if at < cut}
        for letter in self.letters.values():
            letter.states = [state for state in letter.states if state[0] < cut]

    # -- the judgement --------------------------------------------------------------------------

    def judge(self) -> None:
        """Hold all that consumers were told in this era against each other and the log."""
        of_entry: dict[Entry, list[Lease]] = defaultdict(list)
        for lease in self.leases:
            of_entry[lease.entry].append(lease)
            for said in lease.said:
                self._judge_said(lease, said)
        for entry, leases in of_entry.items():
            self._judge_hand_outs(entry, leases)

    def _judge_hand_outs(self, entry: Entry, leases: list[Lease]) -> None:
        over = [
            self.acked.get(entry),
            self._chained_when.get(entry) if entry in self.chained else None,
        ]
        for lease in leases:
            if lease.record is None:
                continue
            for when in over:
                assert when is None or lease.asked < when, f"{lease} after it was over at {when}"
            for before in leases:
                if before.told < lease.asked and before is not lease:
                    self._judge_again(before, lease, leases)

    def _judge_again(self, before: Lease, lease: Lease, leases: list[Lease]) -> None:
        """A lease behind another one of the same entry."""
        between = [
            said
            for one in leases
            for said in one.said
            if said.what == "release"
            and said.asked < lease.told
            and said.answer in ("released", None)
        ]
        if between:
            assert lease.attempt >= before.attempt, (before, lease)
            return
        if before.is_void:
            return
        assert lease.entry.group == PLAIN, f"handed out again without a release: {before}, {lease}"
        assert lease.attempt > before.attempt, (before, lease)
        assert lease.latest_ms >= before.until_ms, f"handed out twice: {before}, {lease}"

    def _judge_said(self, lease: Lease, said: Said) -> None:
        if said.answer is None or said.told is None:
            return
        others = [one for one in lease.said if one is not said]
        void = [
            one
            for one in others
            if one.told is not None
            and one.told < said.asked
            and one.answer in _SUCCESS
            and _ends(one) != _ends(said)
        ]
        if said.answer in _SUCCESS:
            assert not void, f"{said} of a void receipt: {void}, {lease}"
            if _ends(said) == "fail":
                self._judge_failed(lease, said)
            return
        assert said.answer == "expired", (said, lease)
        maybe = [one for one in others if one.asked < said.told and one.answer != "expired"]
        assert maybe or said.latest_ms >= lease.until_ms, f"{said}, but {lease} held"

    def _judge_failed(self, lease: Lease, said: Said) -> None:
        found = self.chained.get(lease.entry)
        assert found is not None, f"{said}, but nothing goes on: {lease}"
        _, letter, due_ms = found
        assert letter == {"retrying": "A", "dead": "D"}[said.answer or ""], (said, found)
        assert said.answer == "dead" or said.next_ms == due_ms, (said, found)


def _ends(said: Said) -> str:
    """What kind of an end it is: an ack may be repeated, and so may a failure."""
    if said.what in ("retry", "dead"):
        return "fail"
    return "ack" if said.what == "ack" else f"{said.what} {said.asked}"
