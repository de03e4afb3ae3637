"""The bounds of the wheel, each with its reason."""

#: A TimerLog unit keeps its delay in a signed 32-bit number of milliseconds.
DELAY_MS_MAX = (1 << 31) - 1
#: One slot is being read while another takes what is farther away.
WINDOW_SLOTS_MIN = 4
#: Units enqueued within a millisecond.
ENQUEUE_PER_MS = 1_000
#: A chain that spreads over more units of the log than this for each of its own is walked by links.
SPARSE_FACTOR = 200
#: Links followed in one turn, 3 µs each.
WALK_MAX = 1_000
#: Open files of the TimerLog.
OPEN_LOG_FILES_MAX = 64
#: Units checked in one read in recovery.
REPLAY_UNITS = 65_536
