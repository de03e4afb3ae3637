"""Which pieces of a log a query reads, and who reads which."""

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.datasource.options import Options
from analytics.log.extent import Extent, Piece, find_extent, first_store_ms, pieces_of

#: A segment is read if its time may lie in the range by this margin: clocks are set back.
MARGIN_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Share:
    """What one partition reads."""

    pieces: tuple[Piece, ...]


def plan(options: Options) -> tuple[Extent, list[Share]]:
    """The log's extent now, and the shares of a batch query; never none, Spark wants one."""
    extent = find_extent(options.path)
    start = extent.start if options.start is None else options.start
    end = extent.end if options.end is None else options.end
    if end > extent.end and extent.ours:
        end = extent.end
    pieces = pieces_of(extent, start, end, count=options.partitions)
    kept = [piece for piece in pieces if _may_hold(extent, piece, options)]
    return extent, shares_of(kept, options.partitions)


def shares_of(pieces: Sequence[Piece], count: int) -> list[Share]:
    """Spread pieces over so many partitions, neighbours together, by their bytes."""
    total = sum(piece.end - piece.start for piece in pieces)
    shares: list[list[Piece]] = [[]]
    filled = 0
    for piece in pieces:
        if shares[-1] and filled * count >= total * len(shares):
            shares.append([])
        shares[-1].append(piece)
        filled += piece.end - piece.start
    return [Share(tuple(share)) for share in shares]


def _may_hold(extent: Extent, piece: Piece, options: Options) -> bool:
    """Whether a piece's segment may hold records of the time asked for."""
    if options.from_ms is None and options.to_ms is None:
        return True
    number = next(n for n, one in enumerate(extent.segments) if one.base == piece.base)
    first_ms = first_store_ms(extent.segments[number])
    if options.to_ms is not None and first_ms is not None and first_ms - MARGIN_MS > options.to_ms:
        return False
    if options.from_ms is None or number + 1 == len(extent.segments):
        return True
    next_ms = first_store_ms(extent.segments[number + 1])
    return next_ms is None or next_ms + MARGIN_MS >= options.from_ms
