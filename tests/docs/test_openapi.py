"""The OpenAPI document against the code: whole, honest, and never a way to a fault of the service."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi import checks

from fanin.entry.http.application import serve
from fanin.entry.http.openapi import document
from fanin.entry.http.table import ROUTES
from fanin.errors import STATUS
from tests.gateway import Gateway
from tests.unit.entry.conftest import CONTEXT

DOCUMENT = document(ROUTES)
OPERATIONS = {
    operation["operationId"]: operation for path in DOCUMENT["paths"].values() for operation in path.values()
}


def references(value: Any) -> Iterator[str]:
    match value:
        case {"$ref": str(reference)}:
            yield reference
        case dict():
            for part in value.values():
                yield from references(part)
        case list():
            for part in value:
                yield from references(part)


def test_every_route_is_in_the_document_under_a_name_of_its_own():
    described = {(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described == {(route.method.lower(), route.path) for route in ROUTES}
    assert len(OPERATIONS) == len(ROUTES)


def test_every_reference_leads_somewhere_and_every_component_is_used():
    named = {
        f"#/components/{kind}/{name}"
        for kind in ("schemas", "responses")
        for name in DOCUMENT["components"][kind]
    }
    used = set(references(DOCUMENT))
    assert used <= named
    assert named == used


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
def test_every_status_a_route_can_give_is_listed(route):
    listed = set(OPERATIONS[route.operation]["responses"])
    expected = {route.status, 400, 401, 403, 429, 500, 503} | {STATUS[error] for error in route.raises}
    named = re.findall(r"\{(\w+)\}", route.path)
    expected |= ({413, 415} if route.body else set()) | ({404} if named else set())
    assert listed == {str(status) for status in expected}
    parameters = OPERATIONS[route.operation]["parameters"]
    assert [p["name"] for p in parameters if p["in"] == "path"] == named


def test_the_document_is_served_and_printed():
    client = Gateway().app
    served = [
        serve(client, {"rawPath": path, "headers": {}, "requestContext": context}, CONTEXT)
        for path in ("/openapi.json", "/v1/openapi.json")
        for context in [{"http": {"method": "GET", "path": path}, "requestId": "r", "stage": "$default"}]
    ]
    printed = subprocess.run(
        [sys.executable, "-m", "fanin.entry.http"], capture_output=True, text=True, check=True
    )
    assert [json.loads(answer["body"]) for answer in served] == [DOCUMENT, DOCUMENT]
    assert json.loads(printed.stdout) == DOCUMENT
    assert DOCUMENT["openapi"].startswith("3.1")


API = schemathesis.openapi.from_wsgi("/openapi.json", Gateway())


@API.parametrize()
@settings(max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
def test_whatever_is_sent_the_answer_is_one_that_the_document_names(case):
    case.call_and_validate(
        checks=[
            schemathesis.checks.not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_headers_conformance,
            checks.response_schema_conformance,
        ]
    )
