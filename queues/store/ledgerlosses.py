"""Losses: what a ledger may still be believed after the machine lost its power.

Both are called under the ledger's lock, while nobody has the store open.
"""

import numpy as np

from queues.store.ledger import Ledger
from queues.store.ledgerentries import State, with_state
from queues.store.limits import LEDGER_SCAN_ENTRIES


def distrust(ledger: Ledger, saved: int | None) -> None:
    """Believe the floor only as far as it was saved.

    The header's page may have reached the device without the entries' page: what the floor passed
    since the last save may be settled nowhere. `saved`: None if it never was.
    """
    header = ledger.header
    if header is None:
        return
    believed = header.start if saved is None else max(header.start, saved)
    floor = max(header.punched, min(header.floor, believed))
    if floor < header.floor:
        ledger.begin_change()
        header.floor = floor
        ledger.count_anew(header)


def cut(ledger: Ledger, end: int, log_end: int) -> None:
    """Forget everything from `end` on.

    The log lost those messages, and others will get their offsets. What went on by a record at or
    beyond the log's end is ready again.
    """
    _cut_entries(ledger, end)
    header = ledger.header
    # What a damaged header left behind is taken over by the one that is made in its place.
    start, stop = (header.punched, header.cursor) if header else (0, ledger.written_end(0))
    changed = False
    for first in range(start, stop, LEDGER_SCAN_ENTRIES):
        entries = ledger.entries(first, min(LEDGER_SCAN_ENTRIES, stop - first))
        lost = np.flatnonzero(entries[:, 1] >= log_end)
        if len(lost):
            ledger.put(first + lost, with_state(entries[lost, 0], State.READY))
            if header:
                header.floor = min(header.floor, first + int(lost[0]))
            changed = True
    if changed and header:
        ledger.count_anew(header)


def _cut_entries(ledger: Ledger, end: int) -> None:
    header = ledger.header
    if max(header.cursor if header else 0, ledger.written_end(0)) <= end:
        return
    ledger.begin_change()
    ledger.take_off(end)
    if header is None:
        return
    header.cursor, header.floor = min(header.cursor, end), min(header.floor, end)
    header.start = min(header.start, header.floor)
    header.punched = min(header.punched, header.floor)
    ledger.count_anew(header)
