"""Compressed bodies: a bit of SYSFLAG says that a body is compressed, three more by what.

Bits 8 to 10 hold the kind: 0 (old clients) and 3 are zlib, 1 is LZ4 (frame format), 2 is Zstandard.
zlib is always there; the other two are read when the package ``lz4`` or ``zstandard`` is installed,
and named in the error when it is not. This store never compresses.
"""

import importlib
import zlib
from typing import Any, Final

from queues.store.errors import BodyUnreadable

COMPRESSION_SHIFT: Final = 8
COMPRESSION_MASK: Final = 0x7

ZLIB_OLD: Final = 0
LZ4: Final = 1
ZSTD: Final = 2
ZLIB: Final = 3


def compression_kind(sys_flag: int) -> int:
    """Return what a compressed body is compressed by."""
    return (sys_flag >> COMPRESSION_SHIFT) & COMPRESSION_MASK


def decompress(body: bytes, sys_flag: int) -> bytes:
    """Return the body as it was sent; raise ``BodyUnreadable`` if it cannot be had."""
    kind = compression_kind(sys_flag)
    try:
        if kind in (ZLIB_OLD, ZLIB):
            return zlib.decompress(body)
        if kind == LZ4:
            return bytes(_library("lz4.frame", "lz4").decompress(body))
        if kind == ZSTD:
            return bytes(_library("zstandard", "zstandard").ZstdDecompressor().decompress(body))
    except BodyUnreadable:
        raise
    except Exception as error:
        raise BodyUnreadable(reason=f"the compressed body is damaged: {error}") from error
    raise BodyUnreadable(reason=f"unknown compression {kind}")


def _library(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        reason = f"the body is compressed and the package {package} is not installed"
        raise BodyUnreadable(reason=reason) from error
