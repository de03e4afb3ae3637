"""The short way for one message: a single send is most of what arrives."""

from collections.abc import Mapping

from queues.store.append import Appender
from queues.store.batch import ID_AT, ID_BYTES
from queues.store.control import Word, counter_word
from queues.store.encode import Encoder
from queues.store.messages import Kind, Outgoing, Placed
from queues.store.names import SCHEDULE_TOPIC, TIMER_TOPIC
from queues.store.onewrite import OneWrite, hashes_of
from queues.store.parts import Parts

#: What a message of each kind counts as.
_COUNTED: Mapping[Kind, tuple[int, ...]] = {
    "I": (counter_word("sent"),),
    "L": (counter_word("sent"), counter_word("sent_level")),
    "T": (counter_word("sent"), counter_word("sent_timed")),
}


class SingleSender:
    """Sends one message at a time."""

    counted = _COUNTED

    def __init__(self, parts: Parts, appender: Appender, encoder: Encoder) -> None:
        self._reserve, self._appender, self._encoder = parts.reserve, appender, encoder
        self._control, self._clock = parts.control, parts.clock
        self._one = OneWrite(parts, appender)
        self._log_bell = parts.control.bell("log")
        self._loops = {
            SCHEDULE_TOPIC: (Word.WAKE_LEVELS, parts.control.bell("levels")),
            TIMER_TOPIC: (Word.WAKE_WHEEL, parts.control.bell("wheel")),
        }

    def send(
        self, message: Outgoing, now_ms: int, more: bytes = b"", more_keys: tuple[str, ...] = ()
    ) -> tuple[Placed, int] | None:
        """Store the message and say where the log then ends; None: go the general way.

        `more` are properties of our own, `more_keys` what it is in the index under besides.
        """
        record, row = self._encoder.send(message, now_ms, more)
        queue, id_at = row[2], row[1] + ID_AT
        keys = (*message.keys, *more_keys) if more_keys else message.keys
        hashes = hashes_of(queue, record[id_at : id_at + ID_BYTES], keys)
        if hashes is None or not self._reserve.whole():
            return None
        entered = self._appender.enter()
        try:
            placed = self._one.write(record, row, hashes, self._clock.now_ms())
            if placed is None:
                return None
            words, put = self._control.words, self._control.set
            for word in self.counted[placed.kind]:
                put(word, words[word] + 1)
        finally:
            if entered:
                self._appender.leave()
        self._log_bell.ring()
        if queue.scheduled:
            wake_word, bell = self._loops[queue.topic]
            if placed.due_ms < words[wake_word]:
                bell.ring()
        return placed, placed.log_offset + row[0]
