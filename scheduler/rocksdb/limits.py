"""The bounds of the RocksDB engine, each with its reason."""

#: Messages enqueued within a millisecond.
ENQUEUE_PER_MS = 250
#: Bytes of one memtable: what a new holder may have to replay (0.1 s).
MEMTABLE_BYTES = 16 << 20
#: Memtables that wait for the device before writing is refused for a moment.
MEMTABLES_MAX = 4
#: Bytes of the write-ahead log that are kept at most.
WAL_BYTES_MAX = 64 << 20
#: Bytes of blocks kept in memory.
CACHE_BYTES = 32 << 20
#: Open files of the database.
OPEN_FILES_MAX = 256
#: Bits of the filter for each key: one look-up in a hundred goes to the device in vain.
FILTER_BITS = 10
#: Bytes of the database's own diary.
DIARY_BYTES = 1 << 20
#: Threads that write memtables and merge files beside the loop.
BACKGROUND_JOBS = 2
#: What lies before the durable read time is removed this often, as one range.
CLEAN_MS = 60_000
#: Records of the journal looked at in one turn for cancels: 1 ms.
JOURNAL_UNITS = 4_096
#: How far a failing message may hold the read time behind: a new holder begins to read there.
STUCK_MS = 3_600_000
