"""The documents say what the server does: OpenAPI, the page that shows it, the list of refusals."""

import re

import yaml
from django.conf import settings
from django.contrib.staticfiles import finders
from openapi_spec_validator import validate

from queues.api.openapi import openapi_document, openapi_yaml
from queues.codes import Code

ERRORS = settings.BASE_DIR / "docs" / "api" / "errors.md"


def test_openapi_yaml_is_current():
    committed = (settings.BASE_DIR / "openapi.yaml").read_bytes()
    assert committed == openapi_yaml(), "run `manage.py write_openapi`"


def test_the_document_is_openapi_3_1():
    document = openapi_document()
    assert document["openapi"] == "3.1.0"
    validate(document)
    assert yaml.safe_load(openapi_yaml()) == document


def test_the_server_gives_the_document(api):
    assert api.get("openapi.json").json == openapi_document()


def test_every_operation_has_an_id_of_its_own():
    ids = [
        operation["operationId"]
        for methods in openapi_document()["paths"].values()
        for operation in methods.values()
    ]
    assert len(ids) == len(set(ids))


def test_every_code_is_explained_with_its_status():
    section, explained = 0, {}
    for line in ERRORS.read_text().splitlines():
        if line.startswith("## "):
            statuses = {int(number) for number in re.findall(r"\b[45]\d\d\b", line)}
            section = statuses
        elif (match := re.match(r"\| `(\w+)` \| .{10,}", line)) and "Meaning" not in line:
            explained[match.group(1)] = section
    assert set(explained) == {code.word for code in Code}
    for code in Code:
        assert code.status in explained[code.word], code


def test_every_code_has_a_word_of_its_own():
    words = [code.word for code in Code]
    assert len(words) == len(set(words))


def test_the_docs_page_loads_nothing_from_elsewhere_and_runs_no_inline_script(client):
    answer = client.get("/api/docs")
    assert answer.status_code == 200
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    html = answer.content.decode()
    assert "http://" not in html
    assert "https://" not in html
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    for path in re.findall(r'(?:src|href)="/static/([^"]+)"', html):
        assert finders.find(path), path
    assert 'data-document="/api/v1/openapi.json"' in html
