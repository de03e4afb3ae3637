"""The bounds of the scheduler, each with its reason."""

#: A loop never sleeps longer, so that a step of the wall clock is noticed and a stop is heard.
SLEEP_MS_MAX = 500
#: How long a holder runs before it looks whether a standby should take over.
TERM_MS = 60_000
#: A change of holder that costs less is not felt; a costlier one waits for a quiet moment.
GAP_MS_MAX = 20
#: With nothing due for so long a loop may change its holder at any cost.
QUIET_MS = 2_000
#: How often the status page is written: cheap, and fresh enough for a console.
STATUS_MS = 1_000
#: A status older than this belongs to nobody: its writer stopped, died, or hangs.
STATUS_FRESH_MS = 3_000
#: A failing step is tried again after this, doubling up to the second.
FAILURE_WAIT_MS = 100
FAILURE_WAIT_MS_MAX = 10_000
#: After so many failures in a row the holder lets a standby try.
FAILURES_MAX = 5
#: How often a standby looks whether it should stop; the lease itself wakes it at once.
STANDBY_LOOK_S = 0.25
#: Ticks that a process waits for a better placed one to take a free lease.
PLACEMENT_TICKS = 2
#: A wall clock that moved this much against the monotonic one was set, not slewed (NTP slews
#: 0.5 ms a second).
CLOCK_STEP_MS = 100
#: Two clock readings that lie further apart say nothing about a step.
CLOCK_READING_MS_MAX = 20
#: Other threads of a scheduler process get the interpreter this often (DESIGN section 5).
SWITCH_INTERVAL_S = 0.0005

#: Units of a level's queue looked at in one go: 0.5 ms.
LOOK_UNITS = 65_536
#: Looks a level may take in one step, so that what is due does not wait for a long scan.
LOOKS_PER_STEP = 8
#: Units of a run that lie in memory at once.
WINDOW_UNITS = 16_384
#: A stretch with more falls of the due time than this is sorted instead of split into runs.
RUNS_PER_LOOK_MAX = 64
#: What one step of the levels hands over at most: two holds of the append lock.
STEP_UNITS_MAX = 2_000
#: What each level with something due may hand over in one step, however many there are.
LEVEL_UNITS_MIN = 128
#: Delay offsets are written to their file this often, if they moved.
DELAY_OFFSETS_SAVE_MS = 5_000
#: An item that cannot be handed over is tried again after this, doubling up to the second.
RETRY_MS = 100
RETRY_MS_MAX = 10_000
#: Lateness samples kept for the quantiles of the status page.
LATENESS_SAMPLES = 4_096
