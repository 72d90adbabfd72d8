"""The document of a small table: every part of a route is where OpenAPI 3.1 wants it."""

from typing import Any

import pytest

from fanin.entry.http.openapi import document
from fanin.entry.http.route import HttpRoute
from fanin.entry.http.table import ROUTES
from fanin.errors import LimitReached
from fanin.wire.batches import ADD_ITEMS, GROUP
from fanin.wire.json_types import TEXT, whole

PUT = HttpRoute(
    "PUT",
    "/v1/things/{batch_id}/{name}",
    "putThing",
    lambda _, __: None,
    GROUP,
    201,
    body=ADD_ITEMS,
    named={"name": TEXT},
    required={"n": whole(1, 9)},
    optional={"m": TEXT},
    keyed=True,
    errors=(LimitReached,),
)
DELETE = HttpRoute("DELETE", "/api/v1/batch/x", "deleteThing", lambda _, __: None, None, 204)


def operation(route: HttpRoute) -> dict[str, Any]:
    return document([route])["paths"][route.path][route.method.lower()]


def test_parameters_say_where_they_are_and_whether_they_must_be_there():
    found = {
        (one["in"], one["name"], one["required"], one["schema"]["type"])
        for one in operation(PUT)["parameters"]
    }
    assert found == {
        ("path", "batch_id", True, "integer"),
        ("path", "name", True, "string"),
        ("query", "n", True, "integer"),
        ("query", "m", False, "string"),
        ("header", "Idempotency-Key", False, "string"),
        ("header", "X-Correlation-Id", False, "string"),
    }


def test_body_and_answer_are_named_components():
    described = operation(PUT)
    assert described["requestBody"] == {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/AddItems"}}},
    }
    assert described["responses"]["201"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Group"
    }


def test_a_route_without_body_and_answer_has_neither():
    described = operation(DELETE)
    assert "requestBody" not in described
    assert described["responses"]["204"] == {
        "description": "No Content",
        "headers": described["responses"]["204"]["headers"],
    }


def test_responses_are_those_of_any_request_and_the_routes_own():
    always = {"400", "401", "403", "429", "500", "503"}
    assert set(operation(DELETE)["responses"]) == {"204"} | always
    assert set(operation(PUT)["responses"]) == {"201", "404", "410", "413", "415"} | always


def test_a_problem_that_passes_says_when_to_come_back():
    responses = document([])["components"]["responses"]
    assert {status for status, one in responses.items() if "Retry-After" in one.get("headers", {})} == {
        "429", "503",
    }  # fmt: skip
    assert all("application/problem+json" in one["content"] for one in responses.values())


@pytest.mark.parametrize(
    ("path", "tag"),
    [
        ("/v1/batches/{batch_id}", "batches"),
        ("/v1/batches/{batch_id}/missing", "items"),
        ("/v1/batches/{batch_id}/failures/{ordinal}", "failures"),
        ("/v1/acks", "items"),
        ("/v1/claim-checks", "scatters"),
        ("/v1/buffers/{name}/put", "buffers"),
        ("/v1/openapi.json", "document"),
        ("/api/v1/batch/exact", "carlyle"),
    ],
)
def test_operations_are_grouped_by_what_they_are_about(path, tag):
    assert operation(DELETE._replace(path=path, named={"name": TEXT}))["tags"] == [tag]


def test_an_answer_says_which_headers_it_may_have():
    route = next(route for route in ROUTES if route.operation == "openBatch")
    headers = operation(route)["responses"]["201"]["headers"]
    assert set(headers) == {"X-Correlation-Id", "Location", "Idempotency-Replayed"}
    assert "RateLimit" in document([])["components"]["responses"]["429"]["headers"]


def test_ids_in_paths_are_whole_numbers_and_names_are_text():
    places = {
        (one["name"], one["schema"]["type"])
        for path, methods in document(ROUTES)["paths"].items()
        for described in methods.values()
        for one in described["parameters"]
        if one["in"] == "path" and "/estimated" not in path
    }
    assert {name for name, kind in places if kind == "integer"} == {"batch_id", "frame_id", "ordinal"}
    assert {name for name, kind in places if kind == "string"} == {"topic", "name"}
