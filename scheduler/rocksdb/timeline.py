"""The timeline: the RocksDB database of waiting messages, in `postdate/rocksdb`.

Its write-ahead log takes each batch before the batch counts, so the death of the process loses
none; after a crash of the machine a beginning of the batches is there, in their order (`sync` says
which for certain). One process has it open at a time: the holder of the `wheel` lease.

Writing never waits for RocksDB's own background work: it is refused (`EngineBusy`) and comes again
in the next turn, so that what is due does not wait either.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from queues.store.errors import DiskFull, StoreError
from scheduler.engine.errors import EngineBroken, EngineBusy
from scheduler.rocksdb.entries import CHECKPOINT_KEY, FLOOR_KEY, Checkpoint, Entry, Floor
from scheduler.rocksdb.limits import (
    BACKGROUND_JOBS,
    CACHE_BYTES,
    DIARY_BYTES,
    FILTER_BITS,
    MEMTABLE_BYTES,
    MEMTABLES_MAX,
    OPEN_FILES_MAX,
    WAL_BYTES_MAX,
)

Answer = TypeVar("Answer")


class TimelineUnusable(StoreError):
    """RocksDB does not answer as it should."""


class Timeline:
    """The database."""

    def __init__(self, path: Path) -> None:
        """Open it, making it if there is none; `EngineBroken` for one that is damaged."""
        self.path = path
        self._writes = WriteOptions()
        self._writes.no_slowdown = True
        path.mkdir(parents=True, exist_ok=True)
        self._database: Rdict = self._asked(lambda: Rdict(str(path), options()))

    # -- writing --------------------------------------------------------------------------------

    def write(
        self, entries: Iterable[Entry], removed: Sequence[bytes] = (), *, floor: Floor | None
    ) -> None:
        """Put and remove entries, all or (with an error) none, and note how early they are."""
        batch = WriteBatch(raw_mode=True)
        put = batch.put
        for key in removed:
            batch.delete(key)
        for key, value in entries:
            put(key, value)
        if floor is not None:
            put(FLOOR_KEY, floor.encode())
        self._asked(lambda: self._database.write(batch, self._writes))

    def save(self, checkpoint: Checkpoint) -> None:
        """Note a checkpoint, and return after it and all before it is on the device."""
        batch = WriteBatch(raw_mode=True)
        batch.put(CHECKPOINT_KEY, checkpoint.encode())
        self._asked(lambda: self._database.write(batch, self._writes))
        self.sync()

    def sync(self) -> None:
        """Return after all that was written is on the device; other threads go on meanwhile."""
        self._asked(lambda: self._database.flush_wal(True))

    def remove_range(self, begin: bytes, end: bytes) -> None:
        """Remove the entries of [begin, end) by one mark, without looking at them."""
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(begin, end)
        self._asked(lambda: self._database.write(batch, self._writes))

    # -- reading --------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint | None:
        """The last checkpoint; None before the first."""
        data = self.get([CHECKPOINT_KEY])[0]
        return None if data is None else Checkpoint.decode(data)

    def floor(self) -> Floor | None:
        """How early the entries of the last batches are; None before the first."""
        data = self.get([FLOOR_KEY])[0]
        return None if data is None else Floor.decode(data)

    def get(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of keys; None for one that is not there."""
        wanted: Any = keys  # (the stubs want lists of every kind of key)
        found: Any = self._asked(lambda: self._database.get(wanted))
        return list(found)

    def read(self, begin: bytes, end: bytes, count_max: int) -> list[Entry]:
        """The first entries of [begin, end); nothing before it is looked at."""
        chosen = ReadOptions()
        chosen.set_iterate_lower_bound(begin)
        chosen.set_iterate_upper_bound(end)

        def take() -> list[Entry]:
            items: Any = self._database.items(from_key=begin, read_opt=chosen)
            return [entry for _, entry in zip(range(count_max), items, strict=False)]

        return self._asked(take)

    def figures(self) -> dict[str, int]:
        """About how many entries it has, and its bytes on the disk."""
        number = self._database.property_int_value
        files = number("rocksdb.total-sst-files-size") or 0
        memory = number("rocksdb.cur-size-all-mem-tables") or 0
        return {
            "timeline_entries": number("rocksdb.estimate-num-keys") or 0,
            "timeline_bytes": files + memory,
        }

    def close(self) -> None:
        """Let it go."""
        self._asked(self._database.close)

    def _asked(self, ask: Callable[[], Answer]) -> Answer:
        """Ask RocksDB; its errors have no types of their own, only words."""
        try:
            return ask()
        except Exception as error:
            raise translated(error, self.path) from error


def read_only_checkpoint(path: Path) -> Checkpoint | None:
    """The checkpoint of a timeline that nobody may have open; None if there is none."""
    if not (path / "CURRENT").exists():
        return None
    try:
        database = Rdict(str(path), Options(raw_mode=True), access_type=AccessType.read_only())
        data = database.get(CHECKPOINT_KEY)
        database.close()
    except Exception:  # noqa: BLE001 (RocksDB has one class; the next holder says what is wrong)
        return None
    return None if data is None else Checkpoint.decode(data)


def translated(error: Exception, path: Path) -> StoreError:
    """What RocksDB's words mean here."""
    words = str(error)
    if "No space left" in words or "Disk quota" in words or "File too large" in words:
        return DiskFull(path=path)
    if "Write stall" in words or "Result incomplete" in words:
        return EngineBusy()
    if "Corruption" in words or "Invalid argument" in words or "No such file" in words:
        return EngineBroken(path=path, reason=words)
    return TimelineUnusable(path=path, reason=words)


def options() -> Any:
    """How the database is opened."""
    chosen = Options(raw_mode=True)
    chosen.create_if_missing(True)
    chosen.set_write_buffer_size(MEMTABLE_BYTES)
    chosen.set_max_write_buffer_number(MEMTABLES_MAX)
    chosen.set_max_total_wal_size(WAL_BYTES_MAX)
    chosen.set_max_background_jobs(BACKGROUND_JOBS)
    chosen.set_max_open_files(OPEN_FILES_MAX)
    chosen.set_level_compaction_dynamic_level_bytes(True)
    chosen.set_compression_type(DBCompressionType.lz4())
    chosen.set_bytes_per_sync(1 << 20)
    chosen.set_keep_log_file_num(2)
    chosen.set_max_log_file_size(DIARY_BYTES)
    chosen.set_stats_dump_period_sec(0)
    tables = BlockBasedOptions()
    tables.set_bloom_filter(FILTER_BITS, False)
    tables.set_block_cache(Cache(CACHE_BYTES))
    chosen.set_block_based_table_factory(tables)
    return chosen
