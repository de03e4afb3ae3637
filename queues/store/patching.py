"""Patching: writing into sealed records what the append lock decided.

Queue offset at byte 20, log offset at 28, store time at 56, a level's due time in ``PD_DUE``, and
last the property CRC over all of it. One by one for a few records, with numpy for many.
"""

import struct

import numpy as np

from queues.store.batch import CRC_BYTES, DUE_AT, Entries, Sealed, column, numbers
from queues.store.crc import crc32
from queues.store.digits import digits_of
from queues.store.limits import VECTOR_RECORDS_MIN
from queues.store.scattered import crcs_of, numbers_at, put_rows

_OFFSETS = struct.Struct(">qq")
_STORE_MS = struct.Struct(">q")


def patch(sealed: Sealed) -> None:
    """Complete the records with what the lock decided; every due time is then known."""
    entries = sealed.entries
    if any(numbers(entries.delays)):
        delays = column(entries.delays)
        dues = np.where(delays > 0, column(entries.store_ms) + delays, column(entries.dues))
        entries.dues = dues if isinstance(entries.dues, np.ndarray) else dues.tolist()
    if len(sealed.starts) < VECTOR_RECORDS_MIN:
        _patch_each(sealed.data, sealed.starts, entries)
    else:
        _patch_all(sealed.data, sealed.starts, entries)


def _patch_each(data: bytearray, starts: list[int], entries: Entries) -> None:
    for number, start in enumerate(starts):
        _OFFSETS.pack_into(
            data, start + 20, entries.queue_offsets[number], entries.log_offsets[number]
        )
        _STORE_MS.pack_into(data, start + 56, entries.store_ms[number])
        if entries.delays[number]:
            at = start + entries.property_at[number] + DUE_AT
            data[at : at + 13] = b"%013d" % entries.dues[number]
        end = start + entries.sizes[number]
        crc = crc32(memoryview(data)[start : end - CRC_BYTES]) & 0x7FFFFFFF
        data[end - 11 : end - 1] = (b"%010d" % crc)[::-1]


def _patch_all(data: bytearray, starts_list: list[int], entries: Entries) -> None:
    starts = np.array(starts_list, np.int64)
    words = numbers_at(data, ">i8")
    words[starts + 20], words[starts + 28] = entries.queue_offsets, entries.log_offsets
    words[starts + 56] = int(entries.store_ms[0])
    level = np.flatnonzero(entries.delays)
    if len(level):
        at = starts[level] + column(entries.property_at)[level] + DUE_AT
        put_rows(data, at, digits_of(column(entries.dues)[level], 13))
    ends = starts + column(entries.sizes) - CRC_BYTES
    # The property CRC's ten digits stand in reverse order (RocketMQ).
    put_rows(data, ends + 9, digits_of(crcs_of(data, starts, ends), 10)[:, ::-1])
