"""Reports that are not made: what is refused, and at which field."""

from typing import Any

import pytest

from tests.http.conftest import Api


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"from": "yesterday"}, "field_invalid", "/from"),
        ({"from": 2_000, "to": 1_000}, "out_of_bounds", "/from"),
        ({"from": 0}, "out_of_bounds", "/from"),
        ({"to": "9999-12-31T23:59:59Z"}, "out_of_bounds", "/to"),
        ({"to": "9999-12-31T23:45:00Z", "time_zone": "Pacific/Kiritimati"}, "out_of_bounds", "/to"),
        ({"report": "weather"}, "field_invalid", "/report"),
        ({"topic": "%DLQ%x"}, "name_reserved", "/topic"),
        ({"topic": "a b"}, "name_invalid", "/topic"),
        ({"time_zone": "Mars/Olympus"}, "field_invalid", "/time_zone"),
        ({"form": 0}, "field_unknown", "/form"),
    ],
)
def test_what_cannot_be_reported_is_refused_at_its_field(
    api: Api, body: dict[str, Any], code: str, pointer: str
) -> None:
    answer = api.post("reports", body)
    assert (answer.status, answer.code, answer.pointers) == (422, code, [pointer])


def test_an_unknown_report_is_404(api: Api) -> None:
    assert api.get("reports/nothing").code == "report_not_found"
