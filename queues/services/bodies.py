"""A body is what a message carries, in the form that its sender wrote it: text, JSON or bytes.

The form travels in the record's FLAG, so that a consumer gets back what was sent:

====  ======  =========================================================
FLAG  form    stored as
====  ======  =========================================================
0     text    the string's UTF-8
1     JSON    the value's own bytes, unchanged (`1.0` stays `1.0`)
2     bytes   the bytes that the sender wrote in base64
====  ======  =========================================================
"""

import binascii

from queues.codes import Code
from queues.problems import Problem
from queues.store.limits import BODY_BYTES_MAX

#: How the sender wrote the body: FLAG of its record.
TEXT, JSON, BYTES = 0, 1, 2


def bytes_of_base64(text: str) -> bytes:
    """The bytes; raises `body_invalid`."""
    try:
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        detail = "With encoding base64 the body is a string in standard base64, padded."
        raise Problem(Code.BODY_INVALID, detail, pointer="/body") from None


def check_size(body: bytes) -> None:
    """Raise `body_required` or `body_too_large`."""
    if not body:
        raise Problem(Code.BODY_REQUIRED, "Give a body that is not empty.", pointer="/body")
    if len(body) > BODY_BYTES_MAX:
        raise Problem(
            Code.BODY_TOO_LARGE,
            f"{len(body)} bytes; at most {BODY_BYTES_MAX}.",
            pointer="/body",
            extra={"maximum_bytes": BODY_BYTES_MAX},
        )
