"""Dead letters: what a group gave up, by topic, key, reason and time of death.

Topic and time are read from the schedule table beside the group's dead-letter queue; a key or a
reason needs the records, so lists that ask for one read a bounded number of them a page.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queues import wires
from queues.codes import Code
from queues.limits import FILTER_READS_MAX
from queues.problems import Problem
from queues.selectors.messages import is_message_id
from queues.store.chainlookup import DeadLetter
from queues.store.limits import DUE_MS_MAX

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which dead letters are meant; None is any."""

    topic: str | None = None
    key: str | None = None
    #: What the last failure's reason is, letter for letter.
    reason: str | None = None
    #: Died at or after, ms.
    died_from_ms: int = 0
    #: Died before, ms.
    died_before_ms: int = DUE_MS_MAX

    @property
    def reads_records(self) -> bool:
        """Whether the schedule table is not enough to decide."""
        return self.key is not None or self.reason is not None

    def takes(self, letter: DeadLetter) -> bool:
        """Whether the letter's key and reason are those asked for."""
        return (self.key is None or self.key in letter.record.keys) and (
            self.reason is None or (letter.reason or "") == self.reason
        )


#: Every dead letter.
ALL = LetterFilter()


@dataclass(frozen=True, slots=True)
class LetterPage:
    """Some dead letters, newest death first."""

    letters: list[DeadLetter]
    #: Death and unit of the last one looked at; None at the end.
    last: tuple[int, int] | None
    #: How many there are in all, or at least so many.
    count: int
    exact: bool


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """The dead letters of one reason."""

    reason: str | None
    count: int
    first_died_ms: int
    last_died_ms: int
    #: One of them.
    sample_id: str


def get_letter(group: str, message_id: str) -> DeadLetter:
    """The message's dead letter; raises `dead_letter_not_found`."""
    lookup = wires.wiring().get_store().chains.lookup
    letter = lookup.find_letter(group, message_id) if is_message_id(message_id) else None
    if letter is None:
        detail = f"{message_id[:64]!r} is no dead letter of this group."
        raise Problem(Code.DEAD_LETTER_NOT_FOUND, detail)
    return letter


def list_letters(
    group: str, wanted: LetterFilter, *, after: tuple[int, int] | None, limit: int
) -> LetterPage:
    """A page of dead letters after a place."""
    died, units = _places(group, wanted)
    count = len(units)
    start = 0
    if after is not None:
        older = (died < after[0]) | ((died == after[0]) & (units < after[1]))
        start = int(np.argmax(older)) if older.any() else count
    if not wanted.reads_records:
        page = slice(start, start + limit)
        letters = list(_read(group, units[page]))
        more = count > start + limit
        last = (int(died[page][-1]), int(units[page][-1])) if more else None
        return LetterPage(letters, last, count, exact=True)
    return _list_reading(group, wanted, died[start:], units[start:], limit)


def _list_reading(
    group: str, wanted: LetterFilter, died: Int64s, units: Int64s, limit: int
) -> LetterPage:
    """Read records until the page is full; a count as far as the bound goes."""
    letters: list[DeadLetter] = []
    count, looked, last = 0, 0, None
    for number, unit in enumerate(units[:FILTER_READS_MAX].tolist()):
        looked = number + 1
        letter = _at(group, unit)
        if letter is None or not wanted.takes(letter):
            continue
        count += 1
        if len(letters) < limit:
            letters.append(letter)
            last = (int(died[number]), unit)
    if looked < len(units):
        last = last if len(letters) == limit else (int(died[looked - 1]), int(units[looked - 1]))
    elif count <= limit:
        last = None
    return LetterPage(letters, last, count, exact=looked == len(units))


def group_reasons(group: str, wanted: LetterFilter) -> tuple[list[ReasonCount], bool]:
    """The newest dead letters by reason, the most frequent first; whether that were all."""
    died, units = _places(group, wanted)
    found: dict[str | None, list[tuple[int, str]]] = {}
    for letter in _read(group, units[:FILTER_READS_MAX]):
        if wanted.takes(letter):
            found.setdefault(letter.reason, []).append((letter.died_ms, letter.id))
    counts = [
        ReasonCount(reason, len(those), min(those)[0], max(those)[0], max(those)[1])
        for reason, those in found.items()
    ]
    counts.sort(key=lambda one: (-one.count, one.reason or ""))
    return counts, len(died) <= FILTER_READS_MAX


def matching(
    group: str, wanted: LetterFilter, *, redriven: bool = True, died_until_ms: int = DUE_MS_MAX
) -> Iterator[DeadLetter]:
    """All that match, oldest death first; without `redriven` only those never driven again."""
    died, units = _places(group, wanted, redriven=redriven)
    for letter in _read(group, units[died <= died_until_ms][::-1]):
        if wanted.takes(letter) and (redriven or letter.redriven_ms is None):
            yield letter


def _places(group: str, wanted: LetterFilter, *, redriven: bool = True) -> tuple[Int64s, Int64s]:
    """Deaths and units that the table lets through, newest death first."""
    store = wires.wiring().get_store()
    letters = store.chains.lookup.letters(group)
    fits = (letters.died_ms >= wanted.died_from_ms) & (letters.died_ms < wanted.died_before_ms)
    if not redriven:
        fits &= ~letters.redriven
    if wanted.topic is not None:
        number = store.outlook.topic_number(wanted.topic)
        fits &= letters.topic_numbers == (-1 if number is None else number)
    died, units = letters.died_ms[fits], letters.units[fits]
    order = np.lexsort((units, died))[::-1]
    return died[order], units[order]


def _read(group: str, units: Int64s) -> Iterator[DeadLetter]:
    for unit in units.tolist():
        letter = _at(group, unit)
        if letter is not None:
            yield letter


def _at(group: str, unit: int) -> DeadLetter | None:
    return wires.wiring().get_store().chains.lookup.letter_at(group, unit)
