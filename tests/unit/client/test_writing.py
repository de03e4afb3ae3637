"""Durations, moments and bodies as they are written."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postdate.client.writing import (
    NewMessage,
    message_fields,
    read_bytes,
    write_duration,
    write_moment,
)
from queues.durations import parse_duration
from queues.moments import parse_moment


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)))
def test_a_timedelta_is_understood_by_the_server_and_never_shorter(delay: timedelta) -> None:
    parsed_ms = parse_duration(write_duration(delay))
    assert parsed_ms is not None
    assert timedelta(0) <= timedelta(milliseconds=parsed_ms) - delay < timedelta(milliseconds=1)


def test_numbers_are_seconds_and_words_stay() -> None:
    assert [write_duration(one) for one in (90, 0.25, "1h30m")] == ["90000ms", "250ms", "1h30m"]


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1971, 1, 1)))  # noqa: DTZ001
def test_a_moment_is_understood_by_the_server(moment: datetime) -> None:
    written = write_moment(moment)
    parsed_ms = parse_moment(written)
    assert parsed_ms is not None
    assert 0 <= parsed_ms - moment.timestamp() * 1000 < 1.1


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        write_moment(datetime(2026, 1, 31, 9, 30))  # noqa: DTZ001 (that is the point)


@given(st.binary() | st.text())
def test_what_is_sent_comes_back_as_bytes(body: bytes | str) -> None:
    fields = message_fields(NewMessage(body=body))
    sent = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    assert read_bytes(fields["body"], fields.get("encoding")) == sent
