"""The OpenAPI 3.1 document, made from the endpoints that the URL configuration leads to.

`openapi.yaml` at the root is this document as committed; `manage.py write_openapi` writes it and a
test keeps it current.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec
from django.urls import URLPattern, URLResolver, get_resolver

from queues.api.endpoint import Endpoint
from queues.api.examples import add_examples
from queues.api.views import ApiView
from queues.codes import Code

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_JSON, _PROBLEM = "application/json", "application/problem+json"
_TAGS = {
    "topics": "Topics",
    "messages": "Messages",
    "parked": "Messages",
    "groups": "Groups",
    "bulk": "Messages",
    "operations": "Operations",
    "reports": "Reports",
    "delay-levels": "Schedule",
    "timer-wheel": "Schedule",
    "forecast": "Schedule",
    "loops": "Schedule",
}
_DESCRIPTION = """\
A delay queue: post a message now, dated for later, and it arrives exactly then, unless you change \
your mind. Times out are RFC 3339 UTC with milliseconds and a twin `_ms`; times in are either. \
Errors are problem documents (RFC 9457) with a stable `code`. Answers to a key with quotas carry \
`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10)."""
#: Statuses that say when to try again.
_NOT_NOW = (429, 503)
_RETRY_AFTER: dict[str, Any] = {
    "description": "Seconds until it is worth another try.",
    "schema": {"type": "integer", "minimum": 1},
}
_PROBLEM_SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "Why a request was refused (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "errors"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "enum": sorted(code.word for code in Code)},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["detail"],
                "properties": {
                    "pointer": {"type": "string", "description": "Into the body (RFC 6901)."},
                    "parameter": {"type": "string", "description": "Of the query, or a header."},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}


@cache
def openapi_document() -> dict[str, Any]:
    """The whole document."""
    found = described_endpoints()
    shapes = [shape for _, _, endpoint in found for shape in _shapes(endpoint)]
    schemas, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip(shapes, schemas, strict=True))
    paths: dict[str, Any] = {}
    for path, method, endpoint in found:
        paths.setdefault(path, {})[method.lower()] = _operation(path, method, endpoint, schema_of)
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Postdate", "version": "1", "description": _DESCRIPTION},
        "paths": paths,
        "components": {
            "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM_SCHEMA, **components},
        },
    }
    add_examples(document)
    return document


def described_endpoints() -> list[tuple[str, str, Endpoint]]:
    """Every address, its methods, and how they are declared."""
    return sorted(_endpoints(get_resolver().url_patterns, "/"), key=lambda one: one[0])


def _endpoints(
    patterns: Iterable[URLPattern | URLResolver], prefix: str
) -> Iterator[tuple[str, str, Endpoint]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _endpoints(pattern.url_patterns, path)
            continue
        view = getattr(pattern.callback, "cls", None)
        if isinstance(view, type) and issubclass(view, ApiView):
            for method, (_, endpoint) in view.endpoints.items():
                yield _PARAMETER.sub(r"{\1}", path), method, endpoint


def _shapes(endpoint: Endpoint) -> Iterator[Any]:
    if endpoint.takes is not None:
        yield endpoint.takes
    yield from (shape for shape in endpoint.gives.values() if shape is not None)


def _operation(
    path: str, method: str, endpoint: Endpoint, schema_of: dict[Any, Any]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _operation_id(path, method),
        "summary": endpoint.summary,
        "tags": [_TAGS.get(path.removeprefix("/api/v1/").partition("/")[0], "Server")],
    }
    if endpoint.scopes is not None:
        described["description"] = f"Scope: {' or '.join(endpoint.scopes)}."
    described["security"] = [] if endpoint.scopes is None else [{"apiKey": []}]
    parameters = [*_path_parameters(path), *_query_parameters(endpoint), *_headers(endpoint)]
    if parameters:
        described["parameters"] = parameters
    if endpoint.takes is not None:
        described["requestBody"] = {
            "required": not endpoint.body_optional,
            "content": {_JSON: {"schema": schema_of[endpoint.takes]}},
        }
    described["responses"] = _responses(endpoint, schema_of)
    return described


def _operation_id(path: str, method: str) -> str:
    words = re.findall(r"[a-z]+", path.removeprefix("/api/v1").lower())
    return "_".join([method.lower(), *words])


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    (schema,), components = msgspec.json.schema_components([endpoint.query])
    properties = components[schema["$ref"].rpartition("/")[2]]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": _without_null(found)}
        for name, found in properties.items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query's parameter is absent, never null."""
    schema = {
        name: value for name, value in schema.items() if name != "default" or value is not None
    }
    choices = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    if len(choices) == 1:
        return {**choices[0], **{name: one for name, one in schema.items() if name != "anyOf"}}
    if choices:
        schema["anyOf"] = choices
    if "enum" in schema:
        schema["enum"] = [one for one in schema["enum"] if one is not None]
    return schema


def _headers(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": text,
            "schema": {"type": "string"},
        }
        for name, text in endpoint.headers.items()
    ]


def _responses(endpoint: Endpoint, schema_of: dict[Any, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, shape in sorted(endpoint.gives.items()):
        response: dict[str, Any] = {"description": endpoint.summary + "."}
        if shape is str:
            response["content"] = {"text/plain": {"schema": {"type": "string"}}}
        elif shape is not None:
            text = {"schema": {"type": "string"}}
            others = dict.fromkeys(endpoint.forms if status == HTTPStatus.OK else (), text)
            response["content"] = {_JSON: {"schema": schema_of[shape]}, **others}
        responses[str(status)] = response
    refusals: dict[int, list[str]] = {}
    for code in dict.fromkeys((*endpoint.codes, *_common_codes(endpoint))):
        refusals.setdefault(code.status, []).append(code.word)
    for status, words in sorted(refusals.items()):
        refusal = {
            "description": ", ".join(f"`{word}`" for word in sorted(words)),
            "content": {_PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        if status in _NOT_NOW:
            refusal["headers"] = {"Retry-After": _RETRY_AFTER}
        responses.setdefault(str(status), refusal)
    return responses


def _common_codes(endpoint: Endpoint) -> tuple[Code, ...]:
    codes: list[Code] = []
    if endpoint.scopes is not None:
        codes += [Code.UNAUTHORIZED, Code.FORBIDDEN, Code.QUOTA_EXCEEDED]
        codes += [Code.CONTROL_UNAVAILABLE, Code.STORE_FAILED]
    if endpoint.takes is not None:
        codes += [Code.JSON_INVALID, Code.REQUEST_TOO_LARGE]
    if endpoint.takes is not None or endpoint.query is not None:
        codes += [Code.FIELD_UNKNOWN, Code.FIELD_INVALID, Code.FIELD_REQUIRED]
    return tuple(codes)


def openapi_yaml() -> bytes:
    """The document as it is committed."""
    return msgspec.yaml.encode(openapi_document())
