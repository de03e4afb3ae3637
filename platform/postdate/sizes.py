"""A size is a number of bytes as operators write it: `536870912`, `512MiB`, `1GB`.

>>> parse_bytes("2MiB")
2097152
"""

import re
from typing import Final

_UNIT_BYTES: Final = {
    "": 1,
    "b": 1,
    "kb": 1_000,
    "mb": 1_000_000,
    "gb": 1_000_000_000,
    "tb": 1_000_000_000_000,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_SIZE: Final = re.compile(r"(\d{1,18})\s*([a-z]*)", re.ASCII)


def parse_bytes(text: str) -> int | None:
    """Bytes, or None if it is not understood."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNIT_BYTES:
        return None
    return int(match[1]) * _UNIT_BYTES[match[2]]
