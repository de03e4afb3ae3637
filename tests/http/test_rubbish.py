"""Whatever comes in, the answer is a problem document: no 5xx, no page, no traceback."""

import io
import json

import pytest
from django.urls import resolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queues import wires
from queues.api.views import UnknownView

BODIES = [
    b"",
    b"{",
    b"nope",
    b"NaN",
    b'{"body": NaN}',
    b'{"body": Infinity}',
    b"\xff\xfe",
    b'{"body": "\xff"}',
    b'{"body": {"a": "\xff"}}',
    b'{"\xff": 1}',
    b'{"body": "\\ud800"}',
    b'{"body": {"a": "\\ud800"}}',
    b'{"tag": "\\udfff", "body": "x"}',
    b"\xef\xbb\xbf{}",
    b'{"body": "x"} trailing',
    b'{"body": "a\x00b"}',
    b'{"body": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"\x00" * 100,
]
SHAPES = [b"null", b"[]", b'"text"', b"1", b"true", b"[[]]", b'[{"body": "x"}]']
WITH_BODY = [
    ("POST", "topics/orders/messages"),
    ("POST", "topics/orders/messages/batch"),
    ("PATCH", "messages/" + "0" * 32),
    ("PUT", "topics/orders"),
    ("PUT", "groups/billing"),
    ("POST", "groups/billing/receive"),
    ("POST", "groups/billing/ack"),
]


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_what_is_not_json_is_refused(api, method, path):
    for body in BODIES[1:]:
        answer = api.call(method, path, raw=body)
        assert answer.status in (400, 422), body[:40]
        # What is unknown may be met before what is not JSON.
        codes = ("json_invalid", "field_invalid", "field_unknown")
        assert answer.code in codes, (body[:40], answer.json)


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_json_of_another_shape_is_422(api, method, path):
    for body in SHAPES:
        answer = api.call(method, path, raw=body)
        assert (answer.status, answer.code) == (422, "field_invalid"), body


def test_an_empty_body_is_not_json(api):
    answer = api.call("POST", "topics/orders/messages", raw=b"")
    assert (answer.status, answer.code) == (400, "json_invalid")
    assert answer.json["detail"] == "The request has no body."


@pytest.mark.parametrize(
    "body",
    [b'{"body": "\\ud800"}', b'{"body": {"a": "\\ud800"}}', b'{"body": 1, "tag": "\\ud800"}'],
)
def test_an_unpaired_surrogate_is_told_as_one(api, body):
    for path, raw in (("", body), ("/batch", b'{"messages": [' + body + b"]}")):
        answer = api.call("POST", f"topics/orders/messages{path}", raw=raw)
        assert (answer.status, answer.code) == (400, "json_invalid")
        assert "unpaired surrogate" in answer.json["detail"]


def test_json_that_is_cut_off_is_told_as_that(api):
    answer = api.call("POST", "topics/orders/messages", raw=b'{"body": "\\ud800')
    assert answer.json["detail"] == "Input data was truncated."


@pytest.mark.parametrize(
    "path",
    ["nothing", "topics/a/b/c", "topics/", "messages/", "../admin", "%00",
     "topics/orders/messages/", "/api", "/api/", "/api/v2/topics", "/api/v1", "/api/v1/"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_an_unknown_address_is_a_problem(api, method, path):
    answer = api.call(method, path, {})
    assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "topics/orders/messages", "POST, OPTIONS"),
        ("GET", "topics/orders/messages", "POST, OPTIONS"),
        ("POST", "topics", "GET, HEAD, OPTIONS"),
        ("FOO", "topics", "GET, HEAD, OPTIONS"),
        ("TRACE", "messages/x", "GET, PATCH, DELETE, HEAD, OPTIONS"),
        ("POST", "/healthz", "GET, HEAD, OPTIONS"),
        ("POST", "/api/docs", "GET, HEAD"),
    ],
)
def test_an_unknown_method_is_405_and_says_which_there_are(api, method, path, allowed):
    answer = api.call(method, path, {})
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == allowed


def test_far_too_many_parameters_are_malformed(api):
    answer = api.get("topics?" + "&".join(f"a{n}=1" for n in range(2000)))
    assert (answer.status, answer.code) == (400, "request_malformed")


def test_options_says_which_methods_there_are(api):
    answer = api.call("OPTIONS", "topics/orders")
    assert (answer.status, answer.headers["Allow"]) == (204, "GET, PUT, DELETE, HEAD, OPTIONS")


def test_head_is_a_get_without_its_body(api):
    answer = api.call("HEAD", "topics")
    assert (answer.status, answer.content) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 0


@pytest.mark.parametrize(
    "path",
    ["messages/{id}/restore", "messages/{id}/deliver-now", "parked/{id}/release",
     "groups/billing/pause", "groups/billing/resume"],
)  # fmt: skip
def test_a_verb_without_fields_takes_none(api, path):
    api.group("billing")
    message_id = api.send(delay="1h")["id"]
    answer = api.post(path.format(id=message_id), {"delay": "5s"})
    assert (answer.status, answer.code, answer.pointers) == (422, "field_unknown", ["/delay"])
    assert api.get(f"messages/{message_id}").json["state"] == "scheduled"
    assert api.post(path.format(id=message_id), {}).status in (200, 404, 409)


def test_a_request_above_16_mib_is_413(api):
    answer = api.call("POST", "topics/orders/messages", raw=b" " * (16 * 1024 * 1024 + 1))
    assert (answer.status, answer.code) == (413, "request_too_large")
    assert answer.json["maximum_bytes"] == 16 * 1024 * 1024


@pytest.mark.parametrize(("size_mib", "left_bytes"), [(17, 0), (64, 0), (65, 65 << 20)], ids=str)
def test_a_request_somewhat_too_large_is_read_away_before_the_413(api, size_mib, left_bytes):
    # Otherwise a client that is still sending sees a broken pipe instead of the answer.
    stream = io.BytesIO(bytes(size_mib << 20))
    response = api._client.generic(
        "POST", "/api/v1/topics/orders/messages", b"",
        **{"wsgi.input": stream, "CONTENT_LENGTH": str(size_mib << 20),
           "HTTP_AUTHORIZATION": f"Bearer {api.secret}"},
    )  # fmt: skip
    assert response.status_code == 413
    assert len(stream.read()) == left_bytes


def test_a_request_without_a_length_is_read_to_its_end(api):
    body = json.dumps({"body": "x"}).encode()
    chunked = {
        "wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked",
        "HTTP_AUTHORIZATION": f"Bearer {api.secret}",
    }  # fmt: skip
    response = api._client.generic("POST", "/api/v1/topics/orders/messages", b"", **chunked)
    assert response.status_code == 201
    chunked["wsgi.input"] = io.BytesIO(b" " * (16 * 1024 * 1024 + 1))
    response = api._client.generic("POST", "/api/v1/topics/orders/messages", b"", **chunked)
    assert response.status_code == 413


@pytest.mark.parametrize("length", ["-5", "x", "99999999999999999999", "1e3"])
def test_a_length_that_is_none_is_refused(api, length):
    response = api._client.generic(
        "POST", "/api/v1/topics/orders/messages", b'{"body": 1}', CONTENT_LENGTH=length,
        HTTP_AUTHORIZATION=f"Bearer {api.secret}",
    )  # fmt: skip
    assert response.status_code in (400, 413)
    assert response["Content-Type"] == "application/problem+json"


def test_a_fault_of_ours_is_a_problem_without_a_traceback(api, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(api.wiring.store, "new_id", fail)
    answer = api.post("topics/orders/messages", {"body": "x"})
    assert (answer.status, answer.code) == (500, "internal_error")
    assert "secret" not in str(answer.json)
    assert "the secret of the house" in caplog.text


@pytest.mark.parametrize("host", ["evil.example", "a b", "x" * 300, ""])
def test_a_program_may_ask_under_any_host_name(api, host):
    answer = api.get("topics", Host=host)
    assert answer.status == 200


def test_a_full_disk_is_503_and_says_so(api, monkeypatch):
    from queues.store.errors import StoreClosing, StoreFailed, StoreFull  # noqa: PLC0415

    for error, code in ((StoreFull, "store_full"), (StoreClosing, "store_closing"),
                        (StoreFailed, "store_failed")):  # fmt: skip

        def refuse(*_, error=error):
            raise error

        monkeypatch.setattr(wires.wiring().get_store(), "send", refuse)
        answer = api.post("topics/orders/messages", {"body": "x"})
        assert (answer.status, answer.code) == (503, code)
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.json["hint"]


def test_a_store_that_cannot_be_opened_is_503_and_the_log_says_why(api, monkeypatch, caplog):
    from queues.store.errors import FormatDamaged  # noqa: PLC0415

    def refuse():
        raise FormatDamaged(path="/data/store/postdate/format.json")

    monkeypatch.setattr(wires.wiring(), "get_store", refuse)
    answer = api.post("topics/orders/messages", {"body": "x"})
    assert (answer.status, answer.code) == (503, "store_failed")
    assert int(answer.headers["Retry-After"]) > 0
    assert "/data" not in str(answer.json)
    assert "/data/store/postdate/format.json" in caplog.text
    assert "from a backup" in caplog.text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
FIELDS = ["body", "encoding", "tag", "keys", "properties", "delay_level", "delay", "delay_ms",
          "delay_seconds", "deliver_at", "queue", "sharding_key"]  # fmt: skip


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(fields=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5))
def test_no_message_whatever_is_in_it_is_a_fault_of_the_server(api, fields):
    raw = json.dumps({"body": "x", **fields}).encode("utf-8", "surrogatepass")
    answer = api.call("POST", "topics/orders/messages", raw=raw)
    assert answer.status in (201, 400, 422), answer.json
    if answer.status == 201:
        assert api.get(f"messages/{answer.json['id']}").status == 200


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    query=st.dictionaries(
        st.sampled_from(["state", "topic", "key", "tag", "kind", "due_after", "due_before",
                         "page_size", "page_token"]),
        st.sampled_from(["scheduled", "ready", "level", "timed", "", "0", "-1", "9" * 30, "orders"])
        | st.text(max_size=12),
    )
)  # fmt: skip
def test_no_list_whatever_is_asked_is_a_fault_of_the_server(api, query):
    from urllib.parse import urlencode  # noqa: PLC0415

    quoted = urlencode({name: value.encode("utf-8", "replace") for name, value in query.items()})
    assert api.get(f"messages?{quoted}").status in (200, 400, 422)


@pytest.mark.parametrize("path", ["/healthz/", "/readyz/x", "/metrics/", "/api", "/api/"])
def test_a_programs_address_with_a_slash_too_many_is_a_problem_and_no_page(api, path) -> None:
    for method in ("GET", "POST"):
        answer = api.call(method, path)
        assert (answer.status, answer.code) == (404, "not_found")


def test_an_address_with_two_slashes_in_front_is_a_programs_too():
    assert resolve("//api/v1/topics").func.view_class is UnknownView
