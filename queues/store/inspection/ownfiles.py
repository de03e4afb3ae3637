"""The files that only our stores have: ``postdate/format.json`` and the queue table.

Both must be there whenever the control page is: a store is made in this order, and without its
sizes it cannot be opened. The control page says how many entries of the queue table are valid; it
is read before the table, which only grows, so a running platform is always found in order. While
it counts none, an empty table is one whose making was stopped.
"""

from queues.store.control import Control, Word
from queues.store.errors import FormatDamaged, StoreVersionUnknown
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout
from queues.store.opening import FORMAT, load_sizes
from queues.store.queuetable import ENTRY_BYTES
from queues.store.settings import Sizes


def check_own_files(layout: Layout, report: Report) -> None:
    """Take down what is wrong with the files that a broker's store does not have."""
    if layout.ours:
        _check_format(layout, report)
        _check_queue_table(layout, report)


def _check_format(layout: Layout, report: Report) -> None:
    path = layout.root / FORMAT
    if not layout.disk.exists(path):
        report.add(path, None, "it is missing, and with it the sizes of the store's files")
        return
    try:
        load_sizes(layout.disk, layout.root, Sizes())
    except FormatDamaged as error:
        report.add(path, None, f"it tells no sizes: {error.reason}")
    except StoreVersionUnknown as error:
        report.add(path, None, f"its version is {error.found}, not {error.known}")
    except IsADirectoryError:
        report.add(path, None, "it is a directory")


def _check_queue_table(layout: Layout, report: Report) -> None:
    control = Control.read(layout.disk, layout.root / "postdate" / "control")
    count = control.words[Word.QUEUE_COUNT]
    path = layout.root / "postdate" / "queues"
    mapped = layout.map(path)
    size_bytes = mapped.size_bytes if mapped else 0
    if size_bytes < count * ENTRY_BYTES:
        report.add(path, None, f"it has {size_bytes} bytes, too few for its {count} queues")
        return
    for number in range(count if mapped else 0):
        assert mapped is not None
        if not mapped.memory[number * ENTRY_BYTES]:
            report.add(path, number * ENTRY_BYTES, f"queue {number} of {count} has no name")
