"""The control page: the few positions that all processes of a store share (`postdate/control`).

A 4 KiB mapped file of native, aligned 8-byte words, each written by one store, so that no reader
sees a half (a big-endian field of RocketMQ's can be read torn).

=====  =====================  ==================================================================
word   name                   meaning
=====  =====================  ==================================================================
0      magic                  ``PDCTRL01``
1      store_id               a random number, fixed when the store is made
2      committed              end of the log that is written and dispatched
3      flushed                end of the log that is known to be on the device
4      store_ms               the last STORETIMESTAMP
5      note_state             0 none, 1 a write has begun, 2 it is in the log, not yet dispatched
6, 7   note_start, note_end   the range of that write
8      note_index_file        the index file that was current before that write (its name)
9      note_index_count       and how many entries it had
10     generation             raised by every control-plane commit
11     log_min                where the log begins (retention)
12     queue_count            entries of the queue table that are valid
13     spare
14     boot                   a hash of the kernel's boot id when the store was last opened first
15     inode                  the control file's own inode number (a copied directory has another)
16     failed                 1 when a sync failed: no writes until reopened and verified
17     holder                 process id of the append lock's holder, 0 when free
18     holder_progress        counts every taking of the lock and every step of long work under it
19     clean                  1 after a clean close
20     derived                1 while the derived files can be believed
21     clock_steps            steps of the wall clock that were noticed
22-23  wake_levels, _wheel    when that loop means to wake, ms; what is due earlier rings
24     index_file             the name of the index file that takes entries
32+    counters               see `COUNTERS`
=====  =====================  ==================================================================

Bytes 2048 on: doorbells, 64 bytes apart. Bytes 3072 on: progress of lease holders, 32 bytes each
(process id, counter, two spare words), for the supervisor.

The invariant: whoever takes the append lock and finds a note repairs that write first.
"""

import hashlib
import struct
from enum import IntEnum
from pathlib import Path

from queues.store.crc import crc32
from queues.store.disk import Disk, Mapped
from queues.store.doorbell import Bell
from queues.store.errors import StoreVersionUnknown

CONTROL_BYTES = 4096
MAGIC = int.from_bytes(b"PDCTRL01", "little")
_BELLS_AT, _BELL_BYTES = 2048, 64
_PROGRESS_AT, _PROGRESS_BYTES, PROGRESS_SLOTS = 3072, 32, 32
_COUNTERS_AT = 32

#: What is counted since the store was made; word 32 on, in this order.
COUNTERS = (
    "sent", "sent_level", "sent_timed", "handed_over", "cancelled", "restored", "moved", "parked",
    "renewed", "expired", "damaged", "repaired", "sends_refused", "bytes_written", "syncs",
    "lateness_ms_sum", "late_over_100ms", "clock_back", "clock_forward", "segments_removed",
    "dropped", "consumers_forgotten",
    "retried", "dead", "redriven", "traces", "traces_lost",
)  # fmt: skip
_COUNTER_WORD = {name: _COUNTERS_AT + position for position, name in enumerate(COUNTERS)}

#: The doorbells: one for every commit, one a loop, and one for leases that were given back.
BELLS = {"log": 0, "levels": 1, "wheel": 2, "housekeeping": 3, "given back": 4}


class Word(IntEnum):
    """Where a value lies in the page, in words."""

    MAGIC = 0
    STORE_ID = 1
    COMMITTED = 2
    FLUSHED = 3
    STORE_MS = 4
    NOTE_STATE = 5
    NOTE_START = 6
    NOTE_END = 7
    NOTE_INDEX_FILE = 8
    NOTE_INDEX_COUNT = 9
    GENERATION = 10
    LOG_MIN = 11
    QUEUE_COUNT = 12
    BOOT = 14
    INODE = 15
    FAILED = 16
    HOLDER = 17
    HOLDER_PROGRESS = 18
    CLEAN = 19
    DERIVED = 20
    CLOCK_STEPS = 21
    WAKE_LEVELS = 22
    WAKE_WHEEL = 23
    INDEX_FILE = 24


#: The words of a note but for its state, in one piece.
_NOTE, _NOTE_AT = struct.Struct("=4q"), Word.NOTE_START * 8


class Note(IntEnum):
    """How far the noted write came."""

    NONE = 0
    WRITING = 1
    WRITTEN = 2


class Control:
    """The mapped control page."""

    def __init__(self, mapped: Mapped) -> None:
        self.mapped = mapped
        self.words = mapped.words
        self.set = mapped.set_word

    @classmethod
    def create(cls, disk: Disk, path: Path) -> "Control":
        """Make and initialise the page if it is missing, and map it."""
        control = cls(disk.map(path, size_bytes=CONTROL_BYTES, create=True))
        if control.words[Word.MAGIC] == 0:
            control.set(Word.STORE_ID, int.from_bytes(disk.random_bytes(7), "little") + 1)
            control.set(Word.INODE, disk.inode(path))
            control.set(Word.BOOT, boot_word(disk))
            control.set(Word.DERIVED, 0)
            control.set(Word.MAGIC, MAGIC)
        control.check(path)
        return control

    @classmethod
    def read(cls, disk: Disk, path: Path) -> "Control":
        """Map the page of a store for reading only."""
        control = cls(disk.map(path, size_bytes=CONTROL_BYTES, write=False))
        control.check(path)
        return control

    def check(self, path: Path) -> None:
        """Raise `StoreVersionUnknown` for a page that this version does not know."""
        if self.words[Word.MAGIC] != MAGIC:
            found = self.words[Word.MAGIC].to_bytes(8, "little", signed=True)
            raise StoreVersionUnknown(path=path, found=found)

    def bell(self, name: str) -> Bell:
        """The doorbell `name`, one of `BELLS`."""
        return Bell(self.mapped, _BELLS_AT + BELLS[name] * _BELL_BYTES)

    def note(self, start: int, end: int, index_file: int, index_count: int) -> None:
        """Say where a write will go; it counts from when the note's state is set, next."""
        self.mapped.put(_NOTE_AT, _NOTE.pack(start, end, index_file, index_count))

    def count(self, name: str, more: int = 1) -> None:
        """Add to a counter (under the append lock)."""
        word = _COUNTER_WORD[name]
        self.set(word, self.words[word] + more)

    def counters(self) -> dict[str, int]:
        """All counters."""
        return {name: self.words[word] for name, word in _COUNTER_WORD.items()}

    def advance_progress(self, name: str, process_id: int) -> None:
        """Say that the holder of lease `name` is alive; `process_id` 0 when it leaves."""
        word = _progress_word(name)
        self.set(word, process_id)
        self.set(word + 1, self.words[word + 1] + 1)


def counter_word(name: str) -> int:
    """Where a counter lies in the page, in words."""
    return _COUNTER_WORD[name]


def _progress_word(name: str) -> int:
    slot = crc32(name.encode()) % PROGRESS_SLOTS
    return (_PROGRESS_AT + slot * _PROGRESS_BYTES) // 8


def read_progress(control: Control) -> dict[str, tuple[int, int]]:
    """Who holds what: name -> (process id, counter); the append lock's holder as ``append``.

    A process id of 0 means that nobody holds it. The supervisor kills a child of its own whose
    counter stands still while it holds something.
    """
    words = control.words
    held = {"append": (words[Word.HOLDER], words[Word.HOLDER_PROGRESS])}
    for slot in range(PROGRESS_SLOTS):
        word = (_PROGRESS_AT + slot * _PROGRESS_BYTES) // 8
        if words[word]:
            held[f"lease-{slot}"] = (words[word], words[word + 1])
    return held


def boot_word(disk: Disk) -> int:
    """A number for this boot of the machine; 0 when it cannot be told."""
    name = disk.boot_id()
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "little") if name else 0
