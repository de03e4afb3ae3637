"""The files that only our stores have: ``postdate/format.json``, the queue table, groups' ledgers.

The first two must be there whenever the control page is: a store is made in this order, and without
its sizes it cannot be opened. The control page says how many entries of the queue table are valid;
it is read before the table, which only grows, so a running platform is always found in order. While
it counts none, an empty table is one whose making was stopped. A ledger's header is written in one
piece, but a reader may see a half of it: it is damaged if it stays so.
"""

from pathlib import Path
from typing import Final

from queues.store.control import Control, Word
from queues.store.errors import FormatDamaged, LedgerDamaged, StoreVersionUnknown
from queues.store.inspection.findings import Report
from queues.store.inspection.layout import Layout
from queues.store.ledgerheader import HEADER_BYTES, decode_header
from queues.store.opening import FORMAT, load_sizes
from queues.store.queuetable import ENTRY_BYTES
from queues.store.settings import Sizes

#: How often a header is read before it is called damaged.
_LOOKS: Final = 3


def check_own_files(layout: Layout, report: Report) -> None:
    """Take down what is wrong with the files that a broker's store does not have."""
    if layout.ours:
        _check_format(layout, report)
        _check_queue_table(layout, report)
        _check_ledgers(layout, report)


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


def _check_ledgers(layout: Layout, report: Report) -> None:
    tree = layout.root / "postdate" / "ledger"
    for group in layout.names(tree):
        for topic in layout.names(tree / group):
            for name in layout.number_names(tree / group / topic):
                path = tree / group / topic / name
                layout.check_file(path, report)
                if not layout.disk.is_directory(path):
                    _check_ledger(layout, path, report)


def _check_ledger(layout: Layout, path: Path, report: Report) -> None:
    for look in range(_LOOKS):
        try:
            file = layout.disk.open(path, write=False)
        except FileNotFoundError:
            return  # Its group was deleted meanwhile.
        try:
            decode_header(file.pread(HEADER_BYTES, 0), path)
        except LedgerDamaged:
            if look == _LOOKS - 1:
                report.add(path, 0, "the header of the ledger is damaged")
            continue
        except StoreVersionUnknown as error:
            report.add(path, 0, f"the ledger's version is {error.found}")
        finally:
            file.close()
        return
