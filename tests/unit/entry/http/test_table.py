"""The route table: every route has its own place, and says all that its path needs."""

import inspect
import re
import subprocess
import sys
from collections import Counter

import pytest

from fanin import names
from fanin.app.api import Buffers, Diagnostics, Directory, Frames, Ledger, Redrives, Routing, Scatters
from fanin.domain.limits import MAX_PAGE
from fanin.entry.http.calls import Call
from fanin.entry.http.route import paged
from fanin.entry.http.table import ROUTES
from fanin.errors import STATUS
from fanin.wire.shapes import SHAPES


def test_no_two_routes_have_the_same_place_or_name():
    places = Counter((route.method, re.sub(r"\{\w+\}", "{}", route.path)) for route in ROUTES)
    operations = Counter(route.operation for route in ROUTES)
    assert {places.most_common(1)[0][1], operations.most_common(1)[0][1]} == {1}


def test_no_path_hides_another():
    """A path without parameters is not read as one with, whatever the order of the table."""
    plain = [route for route in ROUTES if "{" not in route.path]
    shadowed = {
        (route.operation, other.operation)
        for route in plain
        for other in ROUTES
        if other is not route and other.method == route.method and other.matches(route.path)
    }
    assert shadowed == set()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation)
def test_a_route_is_whole(route):
    # Its path is below a root, and only its parameters have types
    assert route.path.startswith((names.API_ROOT, names.CARLYLE_ROOT, "/openapi.json"))
    assert not route.path.endswith("/")
    assert set(route.named) <= set(re.findall(r"\{(\w+)\}", route.path))
    assert not set(route.required) & set(route.optional)
    # The document knows its shapes and errors
    shapes = [shape for shape in (route.body, route.answer) if shape]
    assert all(SHAPES[shape.component] is shape for shape in shapes)
    assert set(route.raises) <= set(STATUS)
    # Its status says whether there is an answer
    assert (route.status == 204) == (route.answer is None)
    assert route.status in {200, 201, 202, 204}
    assert not (route.method in {"GET", "DELETE"} and route.body)
    assert not (route.method == "GET" and route.action)


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if isinstance(route.act, Call)], ids=lambda route: route.operation
)
def test_a_call_has_each_of_its_parameters_in_one_place(route):
    call = route.act
    assert isinstance(call, Call)
    path = set(re.findall(r"\{(\w+)\}", route.path))
    query = {*route.required, *route.optional}
    key = {"key", "caller"} if route.keyed else set()
    parameters = set(call.signature.parameters)
    assert parameters == {*(path & parameters), *query, *call.body, *key}
    assert len(parameters) == len(path & parameters) + len(query) + len(call.body) + len(key)
    # What is in the path and not a parameter, the value of the body knows
    assert path <= parameters or len(call.body) == 1
    assert bool(call.body) == (route.body is not None)


def test_the_library_has_the_table_without_the_tools_of_functions():
    program = "import sys, fanin.client.https.services, fanin.entry.http.table; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "fanin.entry.http.v1.patterns" in modules
    assert not [name for name in modules if name.startswith(("aws_lambda_powertools", "fastjsonschema"))]


def test_the_document_is_of_all_routes(call):
    paths = call("GET", "/openapi.json").json["paths"]
    assert {(method.upper(), path) for path, methods in paths.items() for method in methods} == {
        (route.method, route.path) for route in ROUTES
    }


# Pages of listings: what a query may ask for, and what the use case gets.


LISTINGS = {
    "listBatches": Ledger.list,
    "listAttention": Diagnostics.attention,
    "listMissing": Ledger.missing,
    "listResults": Ledger.results,
    "listFailures": Ledger.failures,
    "listRedrives": Redrives.redrives,
    "listReplies": Scatters.replies,
    "listMissingRecipients": Scatters.missing_recipients,
    "listFailedRecipients": Scatters.failed_recipients,
    "getFrame": Frames.status,
    "listBuffers": Buffers.list,
    "listTopic": Directory.page,
    "listRoutes": Routing.page,
}


def test_a_page_has_a_bound_and_a_default():
    assert paged()["limit"].schema == {
        "type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100,
    }  # fmt: skip
    assert paged(5, 3)["limit"].schema["maximum"] == 5
    assert paged(5, 3)["limit"].schema["default"] == 3


def test_every_listing_is_a_page_of_a_use_case():
    assert {route.operation for route in ROUTES if "limit" in route.optional} == set(LISTINGS)


@pytest.mark.parametrize("operation", LISTINGS)
def test_the_default_that_the_document_names_is_that_of_the_use_case(operation):
    (route,) = [route for route in ROUTES if route.operation == operation]
    asked = inspect.signature(LISTINGS[operation]).parameters
    assert route.optional["limit"].schema["default"] == asked["limit"].default
    assert asked["cursor"].default is None


KEY = {"Idempotency-Key": "run-7"}


@pytest.mark.parametrize(("path", "body"), [("/v1/batches", {"user_key": "a"}), ("/v1/frames", {"size": 3})])
def test_a_repeated_opening_says_that_it_is_one(call, path, body):
    # Given an opening under a key, and one without
    first, without = call("POST", path, body, headers=KEY), call("POST", path, body)
    # When it is repeated, and others follow
    again = call("POST", path, body, headers=KEY)
    later = call("POST", path, body)
    other = call("POST", path, body, headers={"Idempotency-Key": "run-8"})
    # Then only the repeat is named so, and leads to the same
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    for answer in (first, without, later, other):
        assert "Idempotency-Replayed" not in answer.headers


def test_what_was_made_can_be_read_at_its_location(call):
    batch = call("POST", "/v1/batches", {})
    added = call("POST", f"{batch.headers['Location']}/items", {"count": 3})
    frame = call("POST", "/v1/frames", {"size": 3})

    assert call("GET", batch.headers["Location"]).json["batch_id"] == batch.json["batch_id"]
    assert added.headers["Location"] == batch.headers["Location"]
    assert call("GET", frame.headers["Location"]).json["frame_id"] == frame.json["frame_id"]


def test_each_201_has_a_location_but_for_uploads():
    without = {route.operation for route in ROUTES if route.status == 201 and route.location is None}
    assert without == {"claimPayload"}
    assert not [route for route in ROUTES if route.location and route.status != 201]
