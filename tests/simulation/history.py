"""The model: a dictionary of messages, told by the log record by record, and asked about answers.

The log is the order of everything that happened. Each record is applied to the dictionary, and what
cannot be is a fault: a message that is delivered twice, before its time, or after it was cancelled;
a move of what had been handed over; a record that vanishes or changes once it could be seen. An
answer must have been true at some moment between question and answer: at a log offset between the
two ends of the log that readers could see then.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from queues.store.control import CONTROL_BYTES, Word
from queues.store.names import JOURNAL_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.record import Record, RecordState, check_record, decode_record
from tests.simulation.groups import Groups

#: A store time never goes back by this much or less: it stays at the last one instead.
CLOCK_SLACK_MS = 100
_HOLDING = (SCHEDULE_TOPIC, TIMER_TOPIC)


@dataclass(frozen=True, slots=True)
class Moment:
    """What is true of a message from a log offset on."""

    log_offset: int
    #: ``scheduled``, ``ready``, ``cancelled`` or ``parked``.
    state: str
    due_ms: int
    version: int
    #: Log offset of the record that holds it, or held it last.
    held_at: int
    #: What made it so: the letter of ``PD_FROM``, and who asked for it.
    letter: str
    by: str | None


@dataclass(slots=True)
class Told:
    """All that happened to one message."""

    topic: str
    body: bytes
    moments: list[Moment] = field(default_factory=list)

    @property
    def now(self) -> Moment:
        return self.moments[-1]

    def between(self, start: int, end: int) -> list[Moment]:
        """What was true at some time while the visible log ended between two offsets."""
        before = [moment for moment in self.moments if moment.log_offset < start]
        during = [moment for moment in self.moments if start <= moment.log_offset < end]
        return before[-1:] + during


class History:
    """The dictionary, and how far it was told."""

    def __init__(self, root: Path, *, sync: bool, segment_bytes: int) -> None:
        self._root = root
        self._end_word = Word.FLUSHED if sync else Word.COMMITTED
        self._segment_bytes = segment_bytes
        self.position = 0
        self.messages: dict[str, Told] = {}
        #: Log offset -> what it holds, of every record that can hold a message or a retry.
        self._holding: dict[int, Told] = {}
        self._records: dict[int, bytes] = {}
        #: What the groups did with what is in the topics, and their chains of retries.
        self.groups = Groups()
        #: Where the change of each question is, by who asked, with its letter.
        self.changes: dict[str, list[tuple[int, str]]] = {}
        self.counts: dict[str, int] = {}

    # -- following the log ----------------------------------------------------------------------

    def visible(self) -> int:
        """Where the log ends for readers, by the control page as it is."""
        path = self._root / "postdate" / "control"
        try:
            words = memoryview(path.read_bytes()).cast("q")
        except FileNotFoundError:
            return 0
        return words[self._end_word] if len(words) * 8 == CONTROL_BYTES else 0

    def follow(self, latest_ms: int) -> int:
        """Read what can be seen now; returns where that ends.

        `latest_ms`: the highest that the clock ever was.
        """
        end = self.visible()
        assert end >= self.position, f"readers saw {self.position} and now only {end}"
        while self.position < end:
            base, data = self._segment(self.position)
            at, stop = self.position - base, min(len(data), end - base)
            while at < stop:
                found = check_record(data, at, stop, base + at, sealed=True)
                assert found.state in (RecordState.WHOLE, RecordState.FILLER), (base + at, found)
                # A filler as well: the machine may lose it, and a record lie in its place after.
                raw = bytes(data[at : at + found.size])
                self._records[base + at] = raw
                if found.state is RecordState.WHOLE:
                    self._apply(decode_record(raw, verify=False), base + at, latest_ms)
                at += found.size
            self.position = base + at
        return end

    def assert_unchanged(self) -> None:
        """Every record that could ever be seen and is still there is as it was."""
        for offset, found in self._found():
            assert found in (b"", self._records[offset]), f"the record at {offset} changed"

    def lose(self, flushed: int) -> int:
        """Forget what the machine lost of the log's end, which was not flushed; where it began."""
        end = self.visible()
        lost = [
            offset
            for offset, found in self._found()
            if found != self._records[offset] and (found or offset >= end)
        ]
        lost += [offset for offset in self._records if offset >= end]
        cut = min([*lost, end, self.position])
        assert cut >= min(flushed, self.position), f"what was flushed is lost from {cut} on"
        self.position = min(self.position, cut)
        self._records = {at: raw for at, raw in self._records.items() if at < cut}
        self._holding = {at: told for at, told in self._holding.items() if at < cut}
        for told in [*self.messages.values(), *self._holding.values()]:
            told.moments = [moment for moment in told.moments if moment.log_offset < cut]
        self.messages = {one: told for one, told in self.messages.items() if told.moments}
        self.changes.clear()
        self.groups.lose(cut)
        return cut

    def record_at(self, offset: int) -> bytes:
        """A record as it was first seen."""
        return self._records[offset]

    def waiting(self) -> list[int]:
        """When everything is due that waits: messages, and retries of the groups."""
        told = {id(one): one for one in (*self.messages.values(), *self._holding.values())}
        return [one.now.due_ms for one in told.values() if one.now.state == "scheduled"]

    def _found(self) -> Iterator[tuple[int, bytes]]:
        """What now lies where each record was seen; nothing where its segment is gone."""
        segments: dict[int, bytes] = {}
        for offset, raw in self._records.items():
            base = offset - offset % self._segment_bytes
            if base not in segments:
                path = self._root / "commitlog" / f"{base:020d}"
                segments[base] = path.read_bytes() if path.exists() else b""
            yield offset, segments[base][offset - base : offset - base + len(raw)]

    def _segment(self, offset: int) -> tuple[int, memoryview]:
        base = offset - offset % self._segment_bytes
        data = (self._root / "commitlog" / f"{base:020d}").read_bytes()
        return base, memoryview(data)

    # -- what a record means --------------------------------------------------------------------

    def _apply(self, record: Record, offset: int, latest_ms: int) -> None:
        properties = record.properties
        letter, continued = properties["PD_FROM"][0], int(properties["PD_FROM"][1:])
        message_id = properties["UNIQ_KEY"]
        self.counts[letter] = self.counts.get(letter, 0) + 1
        by = properties.get("PD_BY")
        if by is not None:
            self.changes.setdefault(by, []).append((offset, letter))
        if record.topic == JOURNAL_TOPIC and letter == "N":
            return  # A trace of what was received or acknowledged.
        if letter == "N":
            self._first(record, offset, message_id)
        elif letter == "A":
            self.groups.link(record, offset, continued, latest_ms)
            self._begin(record, offset, letter)
        elif letter in "DX" or continued in self.groups.letters:
            self.groups.link(record, offset, continued, latest_ms)
        else:
            told = self._holding.get(continued)
            assert told is not None, f"{offset} continues a message that was never sent"
            self._go_on(told, record, offset, latest_ms)
        if record.topic not in (*_HOLDING, JOURNAL_TOPIC):
            self.groups.note_ready(record, offset)

    def _go_on(self, told: Told, record: Record, offset: int, latest_ms: int) -> None:
        """One more thing that happened to a message, or to a retry."""
        properties, before = record.properties, told.now
        letter, continued = properties["PD_FROM"][0], int(properties["PD_FROM"][1:])
        assert continued == before.held_at, (
            f"{letter} at {offset} continues {continued}, but it is held at {before}"
        )
        due_ms, version = int(properties["PD_DUE"]), int(properties["PD_VERSION"])
        state, held_at = self._state_after(letter, before, record, offset, latest_ms)
        if letter in "HRCP":
            assert (due_ms, version) == (before.due_ms, before.version), (offset, letter, before)
        if letter == "M":
            assert version == before.version + 1, (offset, version, before)
        if letter in "HMRS":
            assert record.body == told.body, f"{letter} at {offset} has another body"
        by = properties.get("PD_BY")
        told.moments.append(Moment(offset, state, due_ms, version, held_at, letter, by))
        if held_at == offset:
            self._holding[offset] = told

    def _first(self, record: Record, offset: int, message_id: str) -> None:
        assert message_id not in self.messages, f"{message_id} was sent twice, at {offset}"
        self.messages[message_id] = self._begin(record, offset, "N")

    def _begin(self, record: Record, offset: int, letter: str) -> Told:
        """The first record of a message, or of a retry."""
        due_ms = int(record.properties["PD_DUE"])
        waits = record.topic in _HOLDING
        topic = record.properties["REAL_TOPIC"] if waits else record.topic
        told = self._holding[offset] = Told(topic, record.body)
        state = "scheduled" if waits else "ready"
        moment = Moment(offset, state, due_ms, 1, offset, letter, record.properties.get("PD_BY"))
        told.moments.append(moment)
        return told

    def _state_after(
        self, letter: str, before: Moment, record: Record, offset: int, latest_ms: int
    ) -> tuple[str, int]:
        """The state that a record brings about, and what holds the message then."""
        if letter == "H":
            assert before.state == "scheduled", f"handed over at {offset}, but it was {before}"
            assert record.topic not in (*_HOLDING, JOURNAL_TOPIC)
            assert record.store_ms >= before.due_ms, f"early at {offset}: {record.store_ms}"
            early = before.due_ms > latest_ms + CLOCK_SLACK_MS
            assert not early, f"early at {offset}: it was {latest_ms}, due {before.due_ms}"
            return "ready", before.held_at
        assert before.state != "ready", f"{letter} at {offset} after the hand-over"
        if letter == "C":
            assert before.state in ("scheduled", "parked"), (offset, before)
            return "cancelled", before.held_at
        if letter == "P":
            # A parked message that is renewed gets a parking record anew.
            assert before.state in ("scheduled", "parked"), (offset, before)
            return "parked", before.held_at
        assert record.topic == TIMER_TOPIC, (offset, record.topic)
        if letter == "R":
            return before.state, offset
        if letter == "M":
            assert before.state in ("scheduled", "parked"), (offset, before)
            return "scheduled", offset
        assert letter == "S", (offset, letter)
        assert before.state in ("cancelled", "parked"), (offset, before)
        return "scheduled", offset
