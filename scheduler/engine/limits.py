"""The bounds of the timer's stages, each with its reason."""

#: How long before its start a slot is read out, so that a large one is ready when it begins.
LEAD_MS = 2_000
#: A slot being read that lies further ahead of the clock means that the clock was set back.
FAR_AHEAD_MS = 10_000

#: Keys of one slot that lie sorted in memory at once (8 bytes each); a larger slot is read in runs.
RUN_KEYS_MAX = 1_000_000
#: Keys, of all slots, that wait to be loaded: two runs, so that the next is read beside the
#: present.
WAITING_KEYS_MAX = 2 * RUN_KEYS_MAX
#: Messages loaded ahead of their time, 25 bytes each.
LOADED_MAX = 65_536
#: Messages in the due list, fresh arrivals and failing ones included, before enqueueing waits.
LISTED_MAX = 1_000_000
#: Failing messages in memory; more are put back into the engine.
FAILING_MAX = 100_000
#: Where a failing message goes when the memory for failing ones is full.
SPILL_MS = 10_000

#: Messages handed over in one turn: 15 ms of the store's work.
HAND_OVER_MAX = 4_000
#: Milliseconds of enqueueing in one turn while nothing is due soon.
ENQUEUE_MS_MAX = 16
#: Settled schedule entries stepped over in one turn while scanning: 1 ms.
SCAN_MAX = 65_536
#: Units looked at in one turn while something is due, and more for each ms of slack: 1 ms.
READ_MIN = 8_192
READ_PER_MS = 8_192
#: Units looked at in one read: 3.4 MB of a TimerLog.
READ_UNITS_MAX = 65_536
#: Keys loaded in one turn while something is due, and more for each ms of slack: under 1 ms.
LOAD_MIN = 4_096
LOAD_PER_MS = 4_096
#: A turn never takes longer than this, however far the next due time is: the clock may step.
SLACK_MS_MAX = 20
#: Cleaning up takes about this long, so it waits for such a gap.
CLEAN_SLACK_MS = 10

#: Schedule entries behind the scan that are looked at in one turn for what is due soon: 0.3 ms.
EXPRESS_UNITS = 65_536
#: How often what waits behind the scan is looked through again for what has become due soon.
EXPRESS_EVERY_MS = 1_000
#: What is due within this is taken ahead of its turn: two looks and the time of one.
EXPRESS_MS = 3_000

#: A failing message is tried again after this, doubling up to the second.
BACK_OFF_MS = 100
BACK_OFF_MS_MAX = 10_000
#: Doublings after which the back-off no longer grows.
BACK_OFF_STEPS = 7

#: How often positions are made durable while anything changes.
CHECKPOINT_MS = 1_000
#: How often the read time alone is written while nothing changes.
IDLE_CHECKPOINT_MS = 60_000
#: After a full disk refused the engine's files, they are tried again after this.
FULL_RETRY_MS = 1_000
#: After the engine said that it is busy, it is tried again after this.
BUSY_RETRY_MS = 10
#: Schedule entries that are read although not asked for, rather than asking once more.
GATHER_GAP = 512
