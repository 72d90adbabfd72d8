"""What the grants of the tracker allow: every route of the API against every group, in both directions."""

import json
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from typing import Any
from urllib.parse import unquote, urlencode

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam

from fanin.app.api import Fanin
from fanin.console.actions.subjects import SUBJECTS
from fanin.domain.access import AccessGroup
from fanin.entry.http.application import application, serve
from fanin.entry.http.route import HttpRoute
from fanin.entry.http.schemas import EXAMPLES as BODIES
from fanin.entry.http.table import ROUTES, route_of
from fanin.errors import Throttled
from fanin_cdk import FaninTracker, Settings
from fanin_cdk.api import CONSOLE
from fanin_cdk.route_paths import paths_of
from tests.infra.conftest import UNBUNDLED, Synthesized
from tests.infra.iam.conditions import _pattern, substituted

GRANTS = {
    "reader": (AccessGroup.READ, lambda tracker: tracker.grant_read),
    "producer": (AccessGroup.PRODUCE, lambda tracker: tracker.grant_producer),
    "consumer": (AccessGroup.CONSUME, lambda tracker: tracker.grant_consumer),
    "operator": (AccessGroup.OPERATE, lambda tracker: tracker.grant_operator),
    "administrator": (AccessGroup.ADMINISTER, lambda tracker: tracker.grant_administrator),
}
EXAMPLES = {
    "batch_id": ("245277353725542", "9007199254740991"),
    "frame_id": ("245277353725542",),
    "ordinal": ("0", "1099511627775"),
    "topic": ("cars", "a:b"),
    "name": ("x", "put", "openapi.json", "a-name-as-long-as-a-batch-id"),
}
"""Values of parameters of paths."""
QUERY = {"key_of_item": "a", "state": "open", "idle_since": "2026-01-01T00:00:00Z", "since": "1", "by": "1"}


class Shop:
    """A stack with a tracker, and roles with one grant each."""

    def __init__(self, **settings: Any) -> None:
        self.stack = cdk.Stack(cdk.App(context=UNBUNDLED), "shop")
        self.tracker = FaninTracker(self.stack, "Fanin", settings=Settings(prefix="shop", **settings))
        self.roles: dict[str, iam.Role] = {}

    def role(self, name: str) -> iam.Role:
        principal = iam.ServicePrincipal("ecs-tasks.amazonaws.com")
        self.roles[name] = iam.Role(self.stack, name, assumed_by=principal)
        return self.roles[name]

    @cached_property
    def _allowed(self) -> dict[str, list[dict[str, Any]]]:
        """What each role may do, synthesized once all have their grants; actions and resources are lists."""
        made = Synthesized(self.stack)
        return {
            name: [
                {**statement, "Action": many(statement["Action"]), "Resource": many(statement["Resource"])}
                for statement in made.statements(role)
            ]
            for name, role in self.roles.items()
        }

    def statements(self, name: str) -> list[dict[str, Any]]:
        return self._allowed[name]

    def calls(self, name: str, effect: str = "Allow") -> list[str]:
        """Patterns of method and path that a role may invoke, or with ``Deny`` may not."""
        return [
            resource["Fn::Join"][1][-1].removeprefix("/$default/")
            for statement in self.statements(name)
            if "execute-api:Invoke" in statement["Action"] and statement["Effect"] == effect
            for resource in statement["Resource"]
        ]


@pytest.fixture(scope="module")
def shop() -> Shop:
    """With a console that has buttons; a role for each grant, and one for all."""
    shop = Shop(console=True, console_write=True)
    for name, (_, grant) in GRANTS.items():
        grant(shop.tracker)(shop.role(name))
    everything = shop.role("all")
    for name in ("grant_read", "grant_operator", "grant_administrator"):
        getattr(shop.tracker, name)(everything)
    for name in ("grant_producer", "grant_consumer"):
        getattr(shop.tracker, name)(everything, via="https")
    return shop


def many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def requests(path: str) -> list[str]:
    """The path of a route with values."""
    found = [path]
    while parameter := re.search(r"\{(\w+)\}", found[0]):
        name = parameter[1]
        values = (
            ("00000000-0000-4000-8000-00dead00beef",)
            if "/estimated/" in path and name == "batch_id"
            else EXAMPLES[name]
        )
        found = [text.replace(f"{{{name}}}", value) for text in found for value in values]
    return found


def allows(patterns: list[str], request: str) -> bool:
    """As IAM matches resources: ``*`` is any text and ``?`` any character, slashes included."""
    return any(fnmatchcase(request, pattern.replace("[", "[[]")) for pattern in patterns)


@pytest.mark.parametrize("name", GRANTS)
def test_a_grant_allows_the_calls_of_its_group_and_no_other(shop, name):
    group, _ = GRANTS[name]
    patterns = shop.calls(name)
    for route in ROUTES:
        asked = [f"{route.method}{path}" for path in requests(route.path)]
        if group in route.groups:
            assert all(allows(patterns, request) for request in asked), route
        else:
            assert not [request for request in asked if allows(patterns, request)]


def disguised(path: str, tails: Iterable[str]) -> Iterator[str]:
    """Paths that lenient readers take for this one, with ends by which patterns may match them."""
    yield from (path + "/" * n for n in range(1, 20))
    yield from (path + "%2F" * n for n in range(1, 7))
    yield path + "%0A"
    for tail in tails:
        yield from (path + mark + tail for mark in ("?", "%3F", "%3f", "%253F", ";", "%23"))
        yield path + "/.." + tail


def readings(path: str) -> set[str]:
    """What API Gateway may take a path for: as it was sent, decoded once, or twice."""
    return {path, unquote(path), unquote(unquote(path))}


@pytest.mark.parametrize("name", GRANTS)
def test_what_iam_judged_is_what_runs(shop, name):
    group, _ = GRANTS[name]
    allow, deny = (
        re.compile(
            "|".join(_pattern(str(substituted(call, {}))).pattern for call in shop.calls(name, effect))
        )
        for effect in ("Allow", "Deny")
    )
    foreign = [route for route in ROUTES if group not in route.groups]
    run = FaninCalled(foreign)
    for route in foreign:
        tails = {call.rpartition("*")[2] for call in shop.calls(name) if call.startswith(f"{route.method}/")}
        # Given a call of another group, which runs if it is let through
        path = requests(route.path)[0]
        assert run(route, path)
        # When a path is let through that looks like it
        for sent in disguised(path, tails):
            judged = [route.method + reading for reading in readings(sent)]
            if not any(allow.fullmatch(one) and not deny.fullmatch(one) for one in judged):
                continue
            # Then nothing of other groups runs, whether the path is cut at a question mark or not
            for seen in readings(sent) | {reading.partition("?")[0] for reading in readings(sent)}:
                assert not run(route, seen), (sent, seen)


class FaninCalled:
    """Whether a request reaches a use case: the services that the routes are given say so."""

    def __init__(self, routes: list[HttpRoute]) -> None:
        self._app = application(self._services, routes)
        self._called = False

    def _services(self) -> Fanin:
        self._called = True
        raise Throttled("enough is known")

    def __call__(self, route: HttpRoute, path: str) -> bool:
        body = BODIES.get(route.body.component, {}) if route.body else None
        query = {name: QUERY[name] for name in route.required}
        self._called = False
        serve(
            self._app,
            {
                "version": "2.0",
                "rawPath": path,
                "rawQueryString": urlencode(query),
                "queryStringParameters": query,
                "headers": {},
                "body": json.dumps(body),
                "requestContext": {
                    "http": {"method": route.method, "path": path},
                    "requestId": "r",
                    "stage": "$default",
                },
            },
            None,
        )
        return self._called


def test_the_patterns_of_groups_together_allow_no_more_than_each_alone():
    for pair in combinations(AccessGroup, 2):
        patterns = paths_of(pair)
        for route in ROUTES:
            for path in requests(route.path):
                allowed = allows(patterns, f"{route.method}{path}")
                assert allowed <= bool(set(pair) & set(route.groups)), (pair, path)


def test_a_role_with_all_grants_stays_within_the_size_of_inline_policies(shop):
    arn = len("arn:aws:execute-api:ap-southeast-2:123456789012:a1b2c3d4e5/$default/")
    calls = [call for effect in ("Allow", "Deny") for call in shop.calls("all", effect)]
    assert sum(arn + len(call) + 3 for call in calls) < 8_000  # of 10,240 characters


@pytest.mark.parametrize("name", GRANTS)
def test_the_console_is_for_readers_and_its_buttons_for_those_who_may_press_them(shop, name):
    group, _ = GRANTS[name]
    calls = [call for call in shop.calls(name) if "/console" in call]
    assert [call for call in calls if call.startswith("GET")] == (
        ["GET/console", "GET/console/*"] if group is AccessGroup.READ else []
    )
    for subject in SUBJECTS:
        path = "/".join(["POST/console", subject.place, *("x" for _ in subject.keys), "actions"])
        for action in subject.actions:
            # Producers and consumers have calls of their own, and press no buttons.
            mine = group in route_of(action.operation).groups and group in CONSOLE
            assert allows(calls, f"{path}/{action.name}") == mine, action.name


@pytest.mark.parametrize("grant", ["grant_consumer", "grant_producer"])
def test_a_way_that_there_is_not_is_refused(shop, grant):
    with pytest.raises(ValueError, match="via is 'mail'; it must be one of https"):
        getattr(shop.tracker, grant)(shop.roles["all"], via="mail")
