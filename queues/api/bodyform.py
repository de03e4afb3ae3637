"""Bodies on their way in and out: raw JSON to what is stored, and back to the form it came in."""

import binascii
import contextlib
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from queues.api.codec import what_is_malformed
from queues.codes import Code
from queues.problems import Problem
from queues.services.bodies import BYTES, JSON, TEXT, bytes_of_base64

_text_decoder = msgspec.json.Decoder(str)

_NULL = memoryview(b"null")

#: A body as it goes out, and how it is to be read.
Shown = tuple[str | Raw, Literal["base64"] | UnsetType]


def take_body(raw: Raw, encoding: str | None) -> tuple[bytes, int]:
    """What to store and in which form; raises `body_required`, `body_invalid`, `json_invalid`."""
    view = memoryview(raw)
    if not view or view == _NULL:
        raise Problem(Code.BODY_REQUIRED, "Give a body that is not empty.", pointer="/body")
    if view[0] == ord('"'):
        try:
            text = _text_decoder.decode(view)
        except msgspec.DecodeError as error:
            told = what_is_malformed(error, view)
            raise Problem(Code.JSON_INVALID, told, pointer="/body") from None
        except UnicodeDecodeError as error:
            raise Problem(Code.JSON_INVALID, f"{error}.", pointer="/body") from None
        if encoding is None:
            return text.encode(), TEXT
        return bytes_of_base64(text), BYTES
    if encoding is not None:
        return bytes_of_base64("!"), BYTES
    body = bytes(view)
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError as error:
            raise Problem(Code.JSON_INVALID, f"{error}.", pointer="/body") from None
    return body, JSON


def show_body(body: bytes, flag: int) -> Shown:
    """The body in the form that was sent; what is no text (a broker's) goes out as base64."""
    if flag == JSON:
        return Raw(body), UNSET
    if flag == TEXT:
        with contextlib.suppress(UnicodeDecodeError):
            return body.decode(), UNSET
    return binascii.b2a_base64(body, newline=False).decode("ascii"), "base64"
