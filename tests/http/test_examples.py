"""Every request and answer of the description has an example, and every example is right."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from queues.api.examples import Examples
from queues.api.openapi import openapi_document

DOCUMENT = openapi_document()


def contents() -> Iterator[Any]:
    """Each schema with its examples, and where it stands."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            asked = operation.get("requestBody", {}).get("content", {})
            yield from (pytest.param(one, id=f"{method} {path}") for one in asked.values())
            for status, response in operation["responses"].items():
                for media_type, content in response.get("content", {}).items():
                    if media_type.endswith(("/json", "+json")):
                        yield pytest.param(content, id=f"{method} {path} {status}")


@pytest.mark.parametrize("content", list(contents()))
def test_an_example_fits_its_schema(content: dict[str, Any]) -> None:
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    examples = [one["value"] for one in content.get("examples", {}).values()]
    if "example" in content:
        examples.append(content["example"])
    assert examples
    for example in examples:
        Draft202012Validator(schema).validate(example)


def test_every_part_of_an_address_has_an_example() -> None:
    without = [
        (path, parameter["name"])
        for path, methods in DOCUMENT["paths"].items()
        for operation in methods.values()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "path" and not parameter.get("example")
    ]
    assert without == []


def test_a_shape_that_nobody_chose_an_example_for_has_one_all_the_same() -> None:
    shape = {
        "type": "object",
        "required": ["receipts", "lease_seconds"],
        "properties": {
            "receipts": {"type": "array", "items": {"type": "string"}},
            "lease_seconds": {"anyOf": [{"type": "null"}, {"type": "number", "minimum": 10}]},
            "note": {"type": "string"},
        },
    }
    request = Examples({"New": shape}).of_request({"$ref": "#/components/schemas/New"})
    assert set(request) == {"receipts", "lease_seconds"}
    Draft202012Validator(shape).validate(request)
