"""Members: the consumers of broadcasting groups, each of which gets every message.

A member stands at places of its own, in ledgers as a group has them, under a name that no group can
have: ``<group>@<16 hex digits>``. The digits are drawn when a ``consumer_id`` is first seen; one
that was forgotten and comes again is a new member, and no process takes an old ledger for its.

``postdate/members/<group>/<32 hex digits of a hash of the consumer_id>`` holds who it is:

=====  =======================================================================
byte   meaning
=====  =======================================================================
0      8 bytes, native: when it was last seen, wall time in ms; to the minute
8      the 16 hex digits
24     the ``consumer_id``, UTF-8
=====  =======================================================================

The file is written last, so that a member that has one has its places. The file's directory has a
lock beside it, ``postdate/members/<group>.lock``, which comes before those of the ledgers.

Example: consumer ``web-1`` of ``cache`` may be ``cache@00c0ffee00c0ffee``; its receipts begin with
``00c0ffee00c0ffee.``.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from queues.store.disk import Disk
from queues.store.errors import MembersFull
from queues.store.limits import MEMBERS_MAX

SEPARATOR = "@"
#: A member that was not seen for so long is forgotten: 7 days.
FORGOTTEN_AFTER_MS = 7 * 86_400_000
#: How often it is noted that a member was seen.
_NOTE_EVERY_MS = 60_000
_SEEN = struct.Struct("=q")
_DIGITS, _NAME_DIGITS = 16, 32
_FIXED_BYTES = _SEEN.size + _DIGITS


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer of a broadcasting group."""

    group: str
    consumer_id: str
    #: The 16 hex digits.
    digits: str
    #: When it was last seen, wall time in ms.
    seen_ms: int

    @property
    def name(self) -> str:
        """What its ledgers know it by."""
        return f"{self.group}{SEPARATOR}{self.digits}"


class Members:
    """The members of all groups; safe for threads and processes."""

    def __init__(self, disk: Disk, directory: Path, drop: Callable[[str], None]) -> None:
        self._disk, self._directory = disk, directory
        #: Lets go of the ledgers of a member, whose name never comes again.
        self._drop = drop

    def enter(
        self, group: str, consumer_id: str, now_ms: int, begin: Callable[[str], None]
    ) -> Member:
        """The member, seen now; for a new one `begin` decides where it begins, given its name.

        Raises `MembersFull` for one too many.
        """
        path = self._path(group, consumer_id)
        known = self._read(group, path)
        if known is not None and abs(now_ms - known.seen_ms) < _NOTE_EVERY_MS:
            return known
        with self._locked(group):
            found = self._read(group, path)
            if found is None:
                if len(self._disk.list_names(path.parent)) >= MEMBERS_MAX:
                    raise MembersFull(group=group, maximum=MEMBERS_MAX)
                digits = self._disk.random_bytes(_DIGITS // 2).hex()
                member = Member(group, consumer_id, digits, now_ms)
                begin(member.name)
                self._write(path, member)
            else:
                member = Member(group, consumer_id, found.digits, now_ms)
                self._note_seen(path, now_ms)
        return member

    def of(self, group: str) -> list[Member]:
        """All members of a group, by consumer_id."""
        directory = self._directory / group
        names = [name for name in self._disk.list_names(directory) if len(name) == _NAME_DIGITS]
        paths = [directory / name for name in names]
        found = [self._read(group, path) for path in paths]
        return sorted((one for one in found if one is not None), key=lambda one: one.consumer_id)

    def forget_unseen(self, now_ms: int) -> int:
        """Forget who was not seen for long; how many."""
        return sum(
            self._forget(group, seen_before_ms=now_ms - FORGOTTEN_AFTER_MS)
            for group in self._disk.list_names(self._directory)
            if not group.endswith(".lock")
        )

    def forget(self, group: str) -> int:
        """Forget all members of a group."""
        return self._forget(group, seen_before_ms=None)

    def _forget(self, group: str, seen_before_ms: int | None) -> int:
        members = self.of(group)
        if not any(seen_before_ms is None or one.seen_ms <= seen_before_ms for one in members):
            return 0
        forgotten = 0
        with self._locked(group):
            for member in self.of(group):
                if seen_before_ms is not None and member.seen_ms > seen_before_ms:
                    continue
                # First the name: whoever is seen from now on is a new member.
                self._disk.unlink(self._path(group, member.consumer_id))
                self._drop(member.name)
                forgotten += 1
            self._disk.sync_directory(self._directory / group)
        return forgotten

    # ---- the files

    @contextmanager
    def _locked(self, group: str) -> Iterator[None]:
        assert "/" not in group, "a group's name is one of the path's"
        self._disk.make_dirs(self._directory / group)
        lock = self._disk.lock(self._directory / f"{group}.lock")
        try:
            with lock:
                yield
        finally:
            lock.close()

    def _path(self, group: str, consumer_id: str) -> Path:
        digest = hashlib.blake2b(consumer_id.encode(), digest_size=_NAME_DIGITS // 2).hexdigest()
        return self._directory / group / digest

    def _read(self, group: str, path: Path) -> Member | None:
        try:
            data = self._disk.read_bytes(path)
        except FileNotFoundError:
            return None
        if len(data) <= _FIXED_BYTES:
            return None  # Its writer died: it had no message yet.
        (seen_ms,) = _SEEN.unpack_from(data)
        digits = data[_SEEN.size : _FIXED_BYTES].decode("ascii")
        return Member(group, data[_FIXED_BYTES:].decode(), digits, seen_ms)

    def _write(self, path: Path, member: Member) -> None:
        told = _SEEN.pack(member.seen_ms) + member.digits.encode() + member.consumer_id.encode()
        self._disk.replace(path, told)

    def _note_seen(self, path: Path, now_ms: int) -> None:
        file = self._disk.open(path)
        try:
            file.pwrite(_SEEN.pack(now_ms), 0)
        finally:
            file.close()
