"""The manifest: which partials there are, what they cover, and what no partial covers.

``manifest.json`` lies beside the partials and is replaced atomically; a partial exists once it is
named there. Ranges are byte ranges of the log, ascending, without overlap. A *gap* is a range that
retention removed before it was read; it is kept for ever and printed on every report that it
touches.

Example: ranges [0, 900) and [900, 2,000), a gap [2,000, 5,000), and the range [5,000, 7,000).
"""

import itertools
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from queues.store.disk import Disk

VERSION: Final = 1
NAME: Final = "manifest.json"


class ManifestUnknown(Exception):
    """A manifest that another version wrote."""


@dataclass(frozen=True, slots=True)
class Partial:
    """The facts of one byte range of the log."""

    #: The Parquet file, beside the manifest.
    file: str
    #: Log offsets.
    start: int
    end: int
    records: int
    #: Stretches without a whole record, and the first of them: log offset and reason.
    damaged: int
    damages: list[list[Any]]
    #: The range's last record: where it lies, its length, and the CRC-32 of its bytes.
    last_offset: int
    last_size: int
    last_crc: int
    #: Store times of the records nearest to the range's ends, ms.
    first_store_ms: int
    last_store_ms: int
    #: Rows of the file.
    rows: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A range that was removed before it was read."""

    start: int
    end: int
    #: What was missed was stored after the one time and before the other, ms; None: not known.
    after_ms: int | None
    before_ms: int | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of one store's log."""

    store_id: int
    partials: tuple[Partial, ...] = ()
    gaps: tuple[Gap, ...] = ()
    version: int = field(default=VERSION)

    @property
    def end(self) -> int | None:
        """How far the log was read; None: not at all."""
        ends = [*(one.end for one in self.partials), *(one.end for one in self.gaps)]
        return max(ends, default=None)

    @property
    def last_store_ms(self) -> int | None:
        """When the last record that was read was stored."""
        return self.partials[-1].last_store_ms if self.partials else None

    def with_partial(self, partial: Partial) -> "Manifest":
        """With one more at the end."""
        known = self.end
        if known is not None and partial.start < known:
            raise ValueError(f"the range from {partial.start} overlaps what ends at {known}")
        return replace(self, partials=(*self.partials, partial))

    def with_gap(self, gap: Gap) -> "Manifest":
        """With one more gap at the end."""
        return replace(self, gaps=(*self.gaps, gap))

    def without_from(self, offset: int) -> "Manifest":
        """Without what begins at an offset or later."""
        return replace(
            self,
            partials=tuple(one for one in self.partials if one.start < offset),
            gaps=tuple(one for one in self.gaps if one.start < offset),
        )

    def with_merged(self, old: tuple[Partial, ...], new: Partial) -> "Manifest":
        """With one partial in the place of adjacent ones."""
        first = self.partials.index(old[0])
        if self.partials[first : first + len(old)] != old or any(
            before.end != after.start for before, after in itertools.pairwise(old)
        ):
            raise ValueError("only adjacent ranges are merged")
        before, after = self.partials[:first], self.partials[first + len(old) :]
        return replace(self, partials=(*before, new, *after))

    def save(self, directory: Path) -> None:
        """Replace the file."""
        content = json.dumps(asdict(self), indent=1).encode()
        Disk().replace(directory / NAME, content)

    @classmethod
    def load(cls, directory: Path, store_id: int) -> "Manifest":
        """Read the file; an empty manifest where there is none."""
        try:
            told = json.loads((directory / NAME).read_bytes())
        except FileNotFoundError:
            return cls(store_id)
        if told.get("version") != VERSION:
            raise ManifestUnknown(f"{directory / NAME} has version {told.get('version')}")
        return cls(
            told["store_id"],
            tuple(Partial(**one) for one in told["partials"]),
            tuple(Gap(**one) for one in told["gaps"]),
        )
