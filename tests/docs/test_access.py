"""docs/how-to/access.md against the route table and the problem of a token."""

import json
import re
from pathlib import Path

from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.domain.access import AccessGroup
from fanin.entry.http.application import application
from fanin.entry.http.openapi import document
from fanin.entry.http.table import ROUTES
from tests.unit.entry.conftest import Client

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "how-to" / "access.md").read_text()
CALL = r"`((?:GET|POST|DELETE|PUT) /[^`]*)`"


def section(title: str) -> str:
    return re.split(r"^##+ ", TEXT.split(f" {title}\n")[1], flags=re.MULTILINE)[0]


def test_it_has_the_calls_of_every_group() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section("The calls of each group"), re.MULTILINE)
    told = {group: re.findall(CALL, calls) for group, calls in rows}
    assert told == {
        str(group): [f"{route.method} {route.path}" for route in ROUTES if route.group is group]
        for group in AccessGroup
    }


def test_it_has_the_calls_that_are_open_to_others_besides() -> None:
    rows = re.findall(
        rf"^\| {CALL} \| ([`a-z, ]+) \| .+ \|$", section("The calls of each group"), re.MULTILINE
    )
    told = {call: tuple(re.findall(r"\w+", groups)) for call, groups in rows}
    assert told == {
        f"{route.method} {route.path}": tuple(map(str, route.also)) for route in ROUTES if route.also
    }


def test_it_shows_the_problem_as_the_api_answers_it() -> None:
    services = Services(Memory().ports())
    call = Client(application(lambda: services, scope_prefix="fanin/"))
    call.authorizer = {"jwt": {"claims": {"sub": "ada", "scope": "fanin/read"}}}
    answer = call("POST", "/v1/batches/7/cancel")
    told = json.loads(section("Tokens").split("```json")[1].split("```")[0])
    assert {**answer.json, "request_id": told["request_id"]} == told


def test_the_document_has_the_group_and_the_scopes_of_every_call() -> None:
    paths = document(ROUTES)["paths"]
    for route in ROUTES:
        operation = paths[route.path][route.method.lower()]
        assert operation["x-fanin-group"] == route.group
        assert operation["x-fanin-scopes"] == [f"fanin/{group}" for group in route.groups]


def test_the_test_that_it_names_is_there() -> None:
    (name,) = re.findall(r"`(tests/\S+\.py)`", TEXT)
    assert "test_an_item_id_of_another_deployment_is_unknown" in (ROOT / name).read_text()
