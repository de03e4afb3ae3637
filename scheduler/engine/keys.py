"""Keys: one long for a message in a slot, ordered as it is handed over.

| Bits | What |
|---|---|
| 62..45 | milliseconds within the slot: 0 late, 1..P on time, `ROLL_OFFSET_MS` to be placed again |
| 44..0 | queue offset in the timer topic |

Sorting a slot's keys sorts its messages by due time, then by arrival; those to be placed again come
last. A key needs 8 bytes, so a million messages of one slot wait in 8 MB.
"""

import numpy as np

from queues.store.timerunits import TIMER_QUEUE_OFFSET_MAX, Longs

_QUEUE_OFFSET_BITS = 45
#: Stands for the milliseconds within the slot of a message that must be placed again.
ROLL_OFFSET_MS = (1 << 17) - 1
#: Greater than every key.
KEY_END = np.iinfo(np.int64).max


def keys_of(offsets_in_slot_ms: Longs, queue_offsets: Longs) -> Longs:
    """The keys of messages."""
    return (offsets_in_slot_ms << _QUEUE_OFFSET_BITS) | queue_offsets


def offsets_in_slot(keys: Longs) -> Longs:
    """The milliseconds within the slot."""
    return keys >> _QUEUE_OFFSET_BITS


def queue_offsets(keys: Longs) -> Longs:
    """The queue offsets."""
    return keys & TIMER_QUEUE_OFFSET_MAX
