"""The deployed API against the OpenAPI document that it serves: no request causes a fault or a surprise."""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi import checks

from fanin.client.https.transport import HttpsRequest, SigV4
from fanin.entry.http.openapi import document
from fanin.entry.http.table import ROUTES

CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def sign(stack, caller):
    """Signs a prepared request, as ``requests`` asks its ``auth`` to."""
    sigv4 = SigV4(caller, stack.region)

    def auth(prepared):
        url = urlsplit(prepared.url)
        query = urlencode(parse_qsl(url.query, keep_blank_values=True), quote_via=quote, safe="")
        prepared.url = url._replace(query=query).geturl()  # in the one encoding that can be signed
        # Only what must be is signed: other headers may be odd on purpose.
        body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
        prepared.headers.update(sigv4(HttpsRequest(prepared.method, prepared.url, {}, body)))
        return prepared

    return auth


def test_the_document_that_is_served_is_that_of_the_code(stack, sign):
    answer = requests.get(f"{stack.api_url}/openapi.json", auth=sign, timeout=30)
    assert answer.json() == json.loads(json.dumps(document(ROUTES)))


def cases_of(api: BaseSchema, path: str, method: str, examples: int) -> Callable[..., None]:
    """A test of one operation: whatever is sent, the answer is one that the document names."""

    @api.include(path=path, method=method).parametrize()
    @settings(max_examples=examples, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    def test(case: Case, stack, sign) -> None:
        body = case.body
        if case.path.endswith("/take") and isinstance(body, dict) and body.get("wait", 20) in range(21):
            body["wait"] = 0  # an earlier request may have defined the buffer: a take would wait for work
        answer = case.call(base_url=stack.api_url, auth=sign, timeout=60)
        case.validate_response(answer, checks=CHECKS)
        # It was signed, so it must have reached the function; but the gateway itself answers OPTIONS.
        assert answer.status_code != HTTPStatus.FORBIDDEN or case.method == "OPTIONS"

    return test


API = schemathesis.openapi.from_dict(document(ROUTES))
RANDOM = SchemathesisConfig.from_dict({"phases": {"coverage": {"enabled": False}}})
SAMPLE = schemathesis.openapi.from_dict(document(ROUTES), config=RANDOM)
"""Without a call for each boundary of each parameter."""
for operation in SAMPLE.get_all_operations():  # a test each, with a name of its own
    of = operation.ok()
    name = "_".join(["test", of.method, *re.findall(r"\w+", of.path)])
    globals()[name] = cases_of(SAMPLE, of.path, of.method, 2)
    globals()[f"{name}_at_length"] = pytest.mark.soak(cases_of(API, of.path, of.method, 20))
