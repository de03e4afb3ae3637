"""The short way of a hand-over: one message that is due, where nothing is amiss.

At a thousand due a second most milliseconds have one message. What a batch decides by columns is
decided here straight on; whatever is unusual (a record that is damaged, a topic that may not
receive, a segment to be made) is left to the general way, which says what is the matter.
"""

from collections.abc import Callable

from queues.store.append import LATE_MS, Appender
from queues.store.batch import CRC_BYTES, ID_AT, ID_BYTES, Row
from queues.store.control import counter_word
from queues.store.delivering import Due, delivered_row
from queues.store.errors import RecordGone
from queues.store.held import HOLDING
from queues.store.messages import HandOver
from queues.store.onewrite import OneWrite, hashes_of
from queues.store.parts import Parts
from queues.store.queuetable import Queue
from queues.store.scan import is_whole

#: Gives the queue that a holding record is for, or why it cannot be handed over there.
RealOf = Callable[[bytes, int], Queue | str]

_HANDED_OVER = counter_word("handed_over")
_LATENESS, _LATE = counter_word("lateness_ms_sum"), counter_word("late_over_100ms")
_ONE = HandOver(1)


class SingleHandOver:
    """Hands over one message at a time."""

    def __init__(self, parts: Parts, appender: Appender, real_of: RealOf) -> None:
        self._parts, self._appender, self._real_of = parts, appender, real_of
        self._control, self._clock = parts.control, parts.clock
        self._one = OneWrite(parts, appender)
        self._log_bell = parts.control.bell("log")

    def hand_over(self, holding: Queue, offset: int) -> tuple[HandOver, int] | None:
        """Deliver the message at an offset of a holding queue; and where the log then ends.

        None: nothing is done, go the general way.
        """
        parts = self._parts
        found = parts.consume_queues.read_one(holding.topic, holding.queue_id, offset)
        if found is None:
            return None
        place, size, _ = found
        try:
            raw = parts.log.read(place, size)
        except RecordGone:
            return None
        if size <= CRC_BYTES or len(raw) != size or not is_whole(raw):
            return None
        own_end = raw.rfind(HOLDING) + 1
        real = self._real_of(raw, own_end)
        if isinstance(real, str):
            return None
        due_ms, _ = parts.table_of(holding).due(offset)
        due = Due(raw, place, own_end, real, due_ms, offset)
        record, row, keys = delivered_row(due, holding)
        id_at = row[1] + ID_AT
        hashes = hashes_of(real, record[id_at : id_at + ID_BYTES], keys)
        return None if hashes is None else self._settle(holding, offset, record, row, hashes)

    def _settle(
        self, holding: Queue, offset: int, record: bytes, row: Row, hashes: list[int]
    ) -> tuple[HandOver, int] | None:
        """Decide under the append lock whether the message goes, and write it if so."""
        due_ms = row[4]
        entered = self._appender.enter()
        try:
            if self._parts.table_of(holding).settled(offset):
                return HandOver(0, settled=(offset,)), 0
            now_ms = self._clock.now_ms()
            if due_ms > now_ms:
                return HandOver(0, not_due=(offset,)), 0
            placed = self._one.write(record, row, hashes, now_ms)
            if placed is None:
                return None
            words, put = self._control.words, self._control.set
            lateness_ms = placed.store_ms - due_ms
            put(_HANDED_OVER, words[_HANDED_OVER] + 1)
            put(_LATENESS, words[_LATENESS] + lateness_ms)
            if lateness_ms > LATE_MS:
                put(_LATE, words[_LATE] + 1)
        finally:
            if entered:
                self._appender.leave()
        self._log_bell.ring()
        return _ONE, placed.log_offset + row[0]
