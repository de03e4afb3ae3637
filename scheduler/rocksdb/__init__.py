"""Timed messages in RocksDB: one key a message, in the order of due times.

The second engine (`POSTDATE_TIMER_ENGINE=rocksdb`), derived from the schedule table as the wheel
is. `entries` has the bytes, `timeline` the database, `engine` the stages.
"""
