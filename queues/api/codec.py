"""The codec turns request bodies into values of declared shape, and values into answers.

What does not fit its shape is refused with the JSON pointer of the first place that is wrong:
`{"delay_second": 5}` is `field_unknown` at `/delay_second`, never a message that is sent at once.
"""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from queues.codes import Code
from queues.moments import parse_moment
from queues.problems import Problem

Shape = TypeVar("Shape")

#: Encodes any answer; safe to share between threads.
encode = msgspec.json.Encoder().encode

_TRUNCATED = "Input data was truncated"
_PLACE = re.compile(r" - at `(?:key in )?\$(.*)`$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
#: Fields whose values of another type are refused like values that are not understood.
_OWN_CODES = {
    "/delay": Code.DELAY_INVALID,
    "/delay_ms": Code.DELAY_INVALID,
    "/delay_seconds": Code.DELAY_INVALID,
    "/deliver_at": Code.DELAY_INVALID,
    "/delay_level": Code.DELAY_LEVEL_UNKNOWN,
}
_STEPS = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d+)\]")


def decode_body(decoder: msgspec.json.Decoder[Shape], body: bytes | memoryview) -> Shape:
    """The body as its shape; raises `json_invalid` or one of the `field_…` problems."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise shape_problem(error) from None
    except RecursionError:
        raise Problem(Code.JSON_INVALID, "The JSON is nested too deeply.") from None
    except UnicodeDecodeError:
        raise Problem(Code.JSON_INVALID, "The body is not UTF-8.") from None
    except msgspec.DecodeError as error:
        raise Problem(Code.JSON_INVALID, what_is_malformed(error, body)) from None


def what_is_malformed(error: msgspec.DecodeError, text: bytes | memoryview) -> str:
    """What is wrong with a text that is no JSON, in a sentence.

    Half of a surrogate pair at the end of a string is truncated input to msgspec.
    """
    if not text:
        return "The request has no body."
    if str(error) == _TRUNCATED and b"\\u" in bytes(text):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(bytes(text))
            return "An unpaired surrogate is no character: it cannot be written in UTF-8."
    return f"{error}."


def convert_query(parameters: Mapping[str, str], shape: type[Shape]) -> Shape:
    """Query parameters as their shape; numbers and booleans are read from their text."""
    try:
        return msgspec.convert(parameters, shape, strict=False)
    except msgspec.ValidationError as error:
        problem = shape_problem(error)
        raise Problem(
            problem.code, problem.detail, pointer=(problem.pointer or "").lstrip("/")
        ) from None


def moment_in_query(name: str, written: str | int | None) -> int | None:
    """A moment of the query in ms: a query has no types, so digits are milliseconds."""
    if written is None:
        return None
    digits = (
        isinstance(written, str)
        and written.lstrip("-").isdecimal()
        and len(written) < len("9" * 20)
    )
    moment_ms = parse_moment(int(written) if digits else written)
    if moment_ms is None:
        detail = "Write RFC 3339 with a zone, or milliseconds since 1970."
        raise Problem(Code.DELAY_INVALID, detail, pointer=name)
    return moment_ms


def shape_problem(error: msgspec.ValidationError) -> Problem:
    """The problem that says what msgspec found."""
    sentence, path, _ = [*_PLACE.split(str(error), maxsplit=1), "", ""][:3]
    pointer = "".join(f"/{name or index}" for name, index in _STEPS.findall(path))
    if unknown := _UNKNOWN.fullmatch(sentence):
        name = unknown.group(1)
        return Problem(
            Code.FIELD_UNKNOWN, f"There is no field {name!r}.", pointer=f"{pointer}/{escape(name)}"
        )
    if missing := _MISSING.fullmatch(sentence):
        name = missing.group(1)
        return Problem(
            Code.FIELD_REQUIRED, f"The field {name!r} is missing.", pointer=f"{pointer}/{name}"
        )
    return Problem(_OWN_CODES.get(pointer, Code.FIELD_INVALID), f"{sentence}.", pointer=pointer)


def escape(name: str) -> str:
    """A name as one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def decoder_of(shape: type[Any]) -> msgspec.json.Decoder[Any]:
    """A decoder for a shape; made once, used by all threads."""
    return msgspec.json.Decoder(shape)
