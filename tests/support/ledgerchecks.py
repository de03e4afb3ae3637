"""What must hold of every ledger at rest."""

import numpy as np

from queues.store.disk import Disk
from queues.store.ledger import Ledger
from queues.store.ledgerentries import State, states, untils
from queues.store.ledgers import Ledgers
from tests.support.queuesinmemory import QueuesInMemory


def assert_ledgers_sound(queues: QueuesInMemory) -> None:
    """Header and entries of every live ledger agree."""
    ledgers = Ledgers(Disk(), queues.root / "postdate" / "ledger")
    try:
        for place in ledgers.places():
            with ledgers.use(place) as ledger:
                assert_ledger_sound(ledger)
    finally:
        ledgers.close()


def assert_ledger_sound(ledger: Ledger) -> None:
    """Header and entries agree, unless a holder died: then the next one makes them agree."""
    found_header = ledger._peek()
    if found_header is None or found_header[1] % 2:
        return
    header, _ = found_header
    assert header.start <= header.floor <= header.cursor
    words = ledger.words(header.floor, header.cursor - header.floor)
    found = states(words)
    leased = untils(words[found == State.LEASED])
    ready = np.flatnonzero(found < State.LEASED)
    assert header.leased == len(leased)
    assert header.again == len(ready)
    assert header.floor <= header.again_from
    if len(ready):
        assert header.again_from <= header.floor + ready[0]
    if len(leased):
        assert 0 < header.next_expiry_ms <= leased.min()
    if len(found):
        assert header.opened(found)[0], "the entry at the floor is open"
    assert not ledger.words(header.cursor, 64).any(), "nothing is written from the cursor on"
