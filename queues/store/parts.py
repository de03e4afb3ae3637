"""The parts of an open store that its writers share, and how they are put together."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from queues.store.batch import Entries
from queues.store.clock import Clock
from queues.store.commitlog import CommitLog
from queues.store.consumequeue import ConsumeQueues
from queues.store.control import Control
from queues.store.disk import Disk, FileLock
from queues.store.dispatch import TableOf
from queues.store.index import IndexSet
from queues.store.marks import LedgerMarks
from queues.store.queuetable import Queue, QueueTable
from queues.store.reserve import Reserve
from queues.store.scan import Scanner
from queues.store.schedule import ScheduleTable
from queues.store.settings import Sizes

#: Reads a range of the log back into what dispatching needs.
EntriesOf = Callable[[int, int], Entries]


@dataclass(frozen=True, slots=True)
class Parts:
    """What writing to a store works on."""

    disk: Disk
    clock: Clock
    control: Control
    lock: FileLock
    log: CommitLog
    queues: QueueTable
    consume_queues: ConsumeQueues
    index: IndexSet
    table_of: TableOf
    entries_of: EntriesOf
    reserve: Reserve
    marks: LedgerMarks


#: Puts the parts together anew: after everything derived was removed they are others.
PartsOf = Callable[[], Parts]


def put_together(
    root: Path, sizes: Sizes, *, disk: Disk, clock: Clock, control: Control, lock: FileLock,
    log: CommitLog, reserve: Reserve,
) -> Parts:  # fmt: skip
    """Open what is derived from the log, on top of what is not."""
    queues = QueueTable(disk, root / "postdate" / "queues", control)
    consume_queues = ConsumeQueues(
        disk, root / "consumequeue", sizes.consume_queue_units, write=True
    )
    index = IndexSet(disk, root / "index", sizes.index_slots, sizes.index_entries, write=True)
    tables: dict[int, ScheduleTable] = {}

    def table_of(queue: Queue) -> ScheduleTable:
        table = tables.get(queue.index)
        if table is None:
            directory = root / "postdate" / "schedule" / queue.topic / str(queue.queue_id)
            table = tables[queue.index] = ScheduleTable(disk, directory, write=True)
        return table

    return Parts(
        disk, clock, control, lock, log, queues, consume_queues, index, table_of,
        Scanner(log, queues).entries, reserve, LedgerMarks(disk, root),
    )  # fmt: skip
