"""The bounds of the store, each with its reason."""

#: RocketMQ's `maxMessageSize`.
BODY_BYTES_MAX = 4 * 1024 * 1024
#: The length field of the properties is a signed 16-bit number.
PROPERTIES_BYTES_MAX = 32_767
#: What a user may fill, so that every hop's own properties fit beside it (API.md).
USER_PROPERTIES_BYTES_MAX = 16 * 1024
USER_PROPERTIES_MAX = 128
#: Each key is an index entry; a hold of `HOLD_RECORDS_MAX` records must fit an index file.
KEYS_MAX = 32
#: A V1 record's topic length is one byte, and a queue table entry has 128 bytes for it.
TOPIC_BYTES_MAX = 127
#: The topic number has 19 bits in the schedule table.
TOPICS_MAX = 1 << 19
#: A due time has 44 bits in the schedule table: until the year 2527.
DUE_MS_MAX = (1 << 44) - 1
#: One hold of the append lock: others must get their turn (DESIGN section 2).
HOLD_RECORDS_MAX = 1000
HOLD_BYTES_MAX = 2 * 1024 * 1024
#: Messages with idempotency keys in one hold: each key is looked up in it.
KEYED_RECORDS_MAX = 250
#: A clock step back up to this is hidden by repeating the last store time (DESIGN section 2).
STEP_BACK_HIDDEN_MS = 100
#: From this many records on, numpy costs less than a loop.
VECTOR_RECORDS_MIN = 12
#: Up to so many are handed over one after another, each straight on.
ONE_BY_ONE_MAX = 7
#: From this many on, delivering column by column costs less than record by record.
BULK_RECORDS_MIN = 48
#: Open file descriptors of ConsumeQueue files a process keeps.
OPEN_QUEUE_FILES_MAX = 256
#: ConsumeQueue files that one process keeps mapped for scattered reads: ten million units are 34.
MAPPED_QUEUE_FILES_MAX = 64
#: Space that hand-overs, cancels, retries and acks can fall back to on a full disk.
BALLAST_BYTES = 64 * 1024 * 1024
#: Units in one file of the schedule table: 1 MiB of 16-byte entries.
SCHEDULE_UNITS = 65_536
#: Leases of one group in one queue: bounds what a scan for expired ones looks at.
LEASES_MAX = 100_000
#: The longest that a lease lasts in all (API.md); one that ends later is from before a clock step.
LEASE_MS_MAX = 12 * 3_600_000
#: Entries that are scanned at once: 1 MiB.
LEDGER_SCAN_ENTRIES = 65_536
#: Settled entries kept below the floor, by which a repeated ack is told from a void one: 1 MiB.
LEDGER_KEPT_ENTRIES = 65_536
#: Ledgers that a process keeps open; each takes two file descriptors.
OPEN_LEDGERS_MAX = 1_024
#: Units from the floor on that an ordered group looks at for messages that may come (DESIGN 6).
LOOK_AHEAD_UNITS = 1_000
#: Consumers of one broadcasting group: each has a ledger for every queue.
MEMBERS_MAX = 1_000
#: How long an ack waits for a ledger: a healthy holder takes milliseconds.
LEDGER_WAIT_S = 2.0
#: ConsumeQueue units that one receive looks at in one queue, so that a filter that matches little
#: cannot hold the ledger for long.
RECEIVE_UNITS_MAX = 100_000
#: Message bytes that one receive hands out, unless the first message alone is larger (API.md).
RECEIVE_BYTES_MAX = 16 * 1024 * 1024
#: Receives that wait in one process, a thread each: 2,000 cost about 130 MB (DESIGN section 6).
WAITERS_MAX = 2_000
