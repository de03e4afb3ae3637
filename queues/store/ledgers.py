"""The ledgers of a store: one file a group, topic and queue, a bounded number of them open.

They lie under ``postdate/ledger/<group>/<topic>/<queue>``. A group that is dropped leaves its
files' headers behind, which say so; whoever makes a group of that name begins anew.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from queues.store.disk import Disk
from queues.store.errors import LedgerBusy
from queues.store.ledger import Ledger
from queues.store.ledgerlosses import cut, distrust
from queues.store.limits import LEDGER_WAIT_S, OPEN_LEDGERS_MAX


class Place(NamedTuple):
    """Which ledger."""

    group: str
    topic: str
    queue_id: int


class Ledgers:
    """All ledgers of one store."""

    def __init__(self, disk: Disk, directory: Path, mend: Callable[[], None] | None = None) -> None:
        self._disk, self._directory, self._mend = disk, directory, mend
        self._mutex = threading.Lock()
        self._open: OrderedDict[Place, Ledger] = OrderedDict()
        self._users: dict[Place, int] = {}
        #: Those whose header was counted in this process, so that opening them again is cheap.
        self._counted: set[Place] = set()

    @contextmanager
    def use(self, place: Place) -> Iterator[Ledger]:
        """The ledger, kept open meanwhile; its file is made if missing."""
        ledger = self._enter(place)
        try:
            yield ledger
        finally:
            self._leave(place)

    @contextmanager
    def hold(self, place: Place) -> Iterator[Ledger | None]:
        """The live ledger of a place with its lock held; None if there is none.

        Raises `LedgerBusy` if another keeps it for long.
        """
        if not self.exists(place):
            yield None
            return
        with self.use(place) as ledger, held(ledger, place):
            yield None if ledger.header is None else ledger

    def _enter(self, place: Place) -> Ledger:
        with self._mutex:
            ledger = self._open.get(place)
            if ledger is None:
                ledger = Ledger(
                    self._disk, self._path(place), counted=place in self._counted, mend=self._mend
                )
                self._open[place] = ledger
            self._open.move_to_end(place)
            self._users[place] = self._users.get(place, 0) + 1
            if len(self._open) > OPEN_LEDGERS_MAX:
                self._close_unused()
            return ledger

    def _leave(self, place: Place) -> None:
        with self._mutex:
            self._users[place] -= 1
            if not self._users[place]:
                del self._users[place]

    def _close_unused(self) -> None:
        unused = next((place for place in self._open if place not in self._users), None)
        if unused is not None:
            ledger = self._open.pop(unused)
            if ledger.counted:
                self._counted.add(unused)
            ledger.close()

    def _path(self, place: Place) -> Path:
        group, topic, queue_id = place
        # Names come from outside: none may lead out of the directory.
        assert all(name and "/" not in name and name not in {".", ".."} for name in (group, topic))
        return self._directory / group / topic / str(queue_id)

    def exists(self, place: Place) -> bool:
        """Whether there is a file for the place, so that asking makes none."""
        return place in self._open or self._disk.exists(self._path(place))

    def remove(self, group: str) -> None:
        """Remove the files of a group that was dropped and whose name never comes again."""
        with self._mutex:
            for place in [one for one in self._open if one.group == group]:
                if place not in self._users:
                    self._open.pop(place).close()
            self._counted = {place for place in self._counted if place.group != group}
        self._disk.remove_tree(self._directory / group)

    def places(self, group: str | None = None) -> list[Place]:
        """All ledgers on disk, or those of one group."""
        names = self._disk.list_names
        groups = names(self._directory) if group is None else [group]
        return [
            Place(name, topic, int(queue))
            for name in groups
            for topic in names(self._directory / name)
            for queue in names(self._directory / name / topic)
        ]

    def sync_names(self, place: Place) -> None:
        """Put the name of a new ledger on the device."""
        for path in list(self._path(place).parents)[:4]:
            self._disk.sync_directory(path)

    def distrust(self, saved: Mapping[Place, int]) -> None:
        """Believe floors as far as they were saved, while nobody has the store open."""
        for place in self.places():
            with self.use(place) as ledger, held(ledger, place):
                distrust(ledger, saved.get(place))

    def cut(self, end_of: Callable[[Place], int], log_end: int) -> None:
        """Forget what lies beyond the ends of queues and log, while nobody has the store open."""
        for place in self.places():
            with self.use(place) as ledger:
                with held(ledger, place):
                    cut(ledger, end_of(place), log_end)
                # Before the log grows: a second loss of power must not bring back entries that
                # tell of what others lie at by then.
                ledger.sync_file()

    def close(self) -> None:
        """Give all descriptors back."""
        with self._mutex:
            for ledger in self._open.values():
                ledger.close()
            self._open.clear()


@contextmanager
def held(ledger: Ledger, place: Place) -> Iterator[None]:
    """Hold the ledger's lock; `LedgerBusy` if another does for long."""
    if not ledger.try_hold(LEDGER_WAIT_S):
        raise LedgerBusy(**place._asdict())
    try:
        yield
    finally:
        ledger.release()
