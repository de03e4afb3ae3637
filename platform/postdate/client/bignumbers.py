"""Big numbers are those of a body that neither `float` nor `int` can hold: `1e400`, 5,000 digits.

The server keeps any JSON number with its very digits. One of these among a hundred messages must
not take down the answer that holds them, and goes back as it came.
"""

import json
import math
import re
from decimal import Context, Decimal
from typing import Any, NoReturn, Self, TypeVar

import msgspec

Answer = TypeVar("Answer")

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
#: What a Decimal cannot hold is no number instead of an exception.
_UNTRAPPED = Context(traps=[])


class BigNumber(Decimal):
    """A JSON number with its very digits; infinite if even `Decimal` cannot hold it.

    Sent again, it is the number that it was; any other Decimal is sent as text.
    """

    #: As it stands in JSON.
    written: str

    def __new__(cls, written: str) -> Self:
        """The number that stands there; raises ValueError if none does."""
        if _NUMBER.fullmatch(written) is None:
            raise ValueError(f"{written[:40]!r} is no JSON number")
        number = super().__new__(cls, written, _UNTRAPPED)
        if number.is_nan():
            number = super().__new__(cls, "-Infinity" if written[0] == "-" else "Infinity")
        number.written = written
        return number

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        """For pickle: from what is written."""
        return type(self), (self.written,)


def decode(decoder: "msgspec.json.Decoder[Answer]", content: bytes) -> Answer:
    """The content as the decoder's type; raises what the decoder raises."""
    try:
        return decoder.decode(content)
    except msgspec.ValidationError:
        # Far slower, so only for what the decoder refuses: a big number, or no answer at all.
        try:
            value = json.loads(
                content.decode(),
                parse_float=_float,
                parse_int=_int,
                parse_constant=_refuse,
            )
        except ValueError as error:
            raise msgspec.DecodeError(str(error)) from error
        return msgspec.convert(value, decoder.type)


def _float(written: str) -> float | BigNumber:
    number = float(written)
    return number if math.isfinite(number) else BigNumber(written)


def _int(written: str) -> int | BigNumber:
    try:
        return int(written)
    except ValueError:  # more digits than the interpreter converts
        return BigNumber(written)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _raw(value: Any) -> msgspec.Raw:
    if isinstance(value, BigNumber):
        return msgspec.Raw(value.written.encode())
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


#: Encodes any body; safe to share between threads.
encode = msgspec.json.Encoder(enc_hook=_raw).encode
