"""Numbers that neither float nor int can hold: they harm no answer, and go back as they came."""

import asyncio
import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import pytest

from postdate.client import AsyncClient, BigNumber, Client, UnexpectedAnswer
from postdate.client.bignumbers import decode, encode
from postdate.client.writing import read_bytes

KEY = "k" * 40
ODD = ["1e400", "-1E999", "1.7976931348623159e308", "7" * 5000, "-" + "7" * 5000,
       "1" * 400 + ".5", "1.50e400", "1e99999999999999999999"]  # fmt: skip
LEASED = (
    b'{"id":"0","topic":"orders","queue":0,"attempt":1,"receipt":"r",'
    b'"delivered_at":"2026-01-31T09:30:00.000Z","delivered_at_ms":1769851800000,'
    b'"lease_expires_at":"2026-01-31T09:31:00.000Z","lease_expires_at_ms":1769851860000,"body":'
)


def answering(content: bytes) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(200, content=content)


def received(*bodies: str) -> bytes:
    return b'{"messages":[' + b",".join(LEASED + one.encode() + b"}" for one in bodies) + b"]}"


def receive(content: bytes) -> list[Any]:
    http = httpx.Client(transport=httpx.MockTransport(answering(content)))
    with http, Client("http://test", KEY, http=http) as client:
        return [one.body for one in client.group("billing").receive(max_messages=9).messages]


def receive_async(content: bytes) -> list[Any]:
    async def work() -> list[Any]:
        http = httpx.AsyncClient(transport=httpx.MockTransport(answering(content)))
        async with http, AsyncClient("http://test", KEY, http=http) as client:
            messages = (await client.group("billing").receive(max_messages=9)).messages
            return [one.body for one in messages]

    return asyncio.run(work())


@pytest.mark.parametrize("receive_with", [receive, receive_async])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:12])
def test_an_odd_number_takes_no_good_neighbour_with_it(receive_with: Any, odd: str) -> None:
    bodies = receive_with(received('{"order":7}', odd, f'{{"a":[{odd}]}}', "0.5", '"text"'))
    assert bodies == [{"order": 7}, BigNumber(odd), {"a": [BigNumber(odd)]}, 0.5, "text"]
    assert [type(one) for one in bodies] == [dict, BigNumber, dict, float, str]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:12])
def test_what_was_received_goes_back_with_its_very_digits(odd: str) -> None:
    (body,) = receive(received(f'{{"a":[{odd}]}}'))
    pickled = pickle.loads(pickle.dumps(body))  # noqa: S301 (our own)
    for same in (body, copy.deepcopy(body), pickled):
        assert encode(same) == read_bytes(same, None) == f'{{"a":[{odd}]}}'.encode()


def test_a_big_number_is_a_decimal_to_count_with() -> None:
    assert BigNumber("1e400") / 10 == Decimal("1e399")
    assert BigNumber("-1e99999999999999999999") == Decimal("-Infinity")
    assert encode([Decimal("9.50")]) == b'["9.50"]', "any other Decimal stays text"


@pytest.mark.parametrize("written", ["", "01", "1.", "NaN", "Infinity", "1e400,2", "\u0661"])
def test_what_is_no_json_number_is_no_big_number(written: str) -> None:
    with pytest.raises(ValueError, match="no JSON number"):
        BigNumber(written)


def test_what_cannot_be_encoded_is_refused_as_ever() -> None:
    with pytest.raises(TypeError, match="objects of type object is unsupported"):
        encode({"a": object()})


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b'{"messages":[{"body":1e400}]}',
        b'{"messages":[],"paused":1e400}',
        received("1e400").replace(b'"attempt":1', b'"attempt":1e400'),
        received("1e400").replace(b'"queue":0', b'"queue":NaN'),
        received("1e400")[:-1],
        received("1e400").replace(b"orders", b"\xff"),
    ],
)
def test_what_is_no_answer_stays_unexpected(content: bytes) -> None:
    with pytest.raises(UnexpectedAnswer):
        receive(content)


def test_without_a_big_number_the_values_are_those_of_the_quick_way() -> None:
    content = b'[-0, -0.0, 1e-400, 18446744073709551616, 1e308, "\\u00e9", null, {"a": true}]'
    slow = decode(msgspec.json.Decoder(), content[:-1] + b", 1e400]")[:-1]
    assert repr(slow) == repr(msgspec.json.decode(content))


@pytest.mark.parametrize("receive_with", [receive, receive_async])
def test_an_answer_that_is_nested_too_deeply_is_told_as_one(receive_with: Any) -> None:
    with pytest.raises(UnexpectedAnswer, match="nested too deeply"):
        receive_with(received("[" * 5_000 + "]" * 5_000))
