"""Looking back: the due time of an earlier record, to which a later one points."""

from analytics.log.extent import Extent
from queues.store.disk import Disk, Mapped
from queues.store.errors import RecordCorrupt
from queues.store.record import FIXED_BYTES, LOG_OFFSET_AT
from queues.store.scan import parse


class Lookback:
    """Reads single records of a log; segments are mapped when they are first asked for."""

    def __init__(self, extent: Extent) -> None:
        self._segments = extent.segments
        self._maps: dict[int, Mapped | None] = {}

    def due_at(self, offset: int) -> int | None:
        """The due time in the record at a log offset; None if it is gone or tells none."""
        for number, segment in enumerate(self._segments):
            if segment.base <= offset < segment.base + segment.size:
                mapped = self._map(number)
                return None if mapped is None else _due(mapped, offset - segment.base, offset)
        return None

    def _map(self, number: int) -> Mapped | None:
        if number not in self._maps:
            try:
                self._maps[number] = Disk().map(self._segments[number].path, write=False)
            except FileNotFoundError:
                self._maps[number] = None
        return self._maps[number]


def _due(mapped: Mapped, at: int, offset: int) -> int | None:
    memory = mapped.memory
    size = int.from_bytes(memory[at : at + 4], "big")
    raw = memory[at : at + size] if FIXED_BYTES <= size <= mapped.size_bytes - at else b""
    if raw[LOG_OFFSET_AT : LOG_OFFSET_AT + 8] != offset.to_bytes(8, "big"):
        return None
    try:
        return parse(raw).due_ms
    except RecordCorrupt:
        return None
