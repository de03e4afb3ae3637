"""Roll: what lay in the last slot of the window is placed again, nearer to its time.

Nothing is written to the CommitLog: that is renewing, which housekeeping does (DESIGN section 4).
"""

from typing import TYPE_CHECKING

import numpy as np

from scheduler.engine.keys import queue_offsets
from scheduler.engine.scan import messages
from scheduler.wheel.enqueue import enqueue
from scheduler.wheel.state import WheelState

if TYPE_CHECKING:
    from queues.store.store import Store


def roll(state: WheelState, store: "Store", keys_max: int) -> int:
    """Place up to `keys_max` messages again; how many were looked at."""
    if not state.rolls:
        return 0
    run = state.rolls[0]
    keys = run.keys[run.begin : run.begin + keys_max]
    enqueue(state, messages(store, np.sort(queue_offsets(keys))))
    state.outstanding.settle(np.full(len(keys), run.slot_ms, dtype=np.int64))
    run.begin += len(keys)
    state.waiting_keys -= len(keys)
    if run.begin == len(run.keys):
        state.rolls.popleft()
    return len(keys)
