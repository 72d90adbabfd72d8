from __future__ import annotations

import json
import re
from html import unescape

from fanin.console.pages.routes import POLICIES, SHOWN
from fanin.domain.directory import Register
from fanin.domain.routing import Policy, PutRoute
from tests.unit.console.looking import pages_from

PATTERN = {"source": ["orders"], "detail": {"region": ["eu", "us"]}}


def put(service, name: str, topic: str = "cars", pattern=PATTERN, **more) -> None:
    service.services.routing.put(PutRoute(name, pattern, topic, **more))


def test_routes_are_listed(service, browse) -> None:
    put(service, "orders", policy=Policy.FIRST, attributes={"region": "eu"})
    put(service, "audit", "audit")
    page = browse().get("/routes").text
    assert re.findall(r'class="name" href="/routes/([^"]*)"', page) == ["audit", "orders"]
    row = page.partition('href="/routes/orders"')[2]
    assert 'href="/directory/cars"' in row
    assert "first" in row
    assert "region=eu" in row
    assert json.dumps(PATTERN) in unescape(row)


def test_every_route_is_on_one_small_page_when_paging_through(service, browse) -> None:
    # Given more routes than two pages have, with names, topics and patterns as long as they may be
    wanted = [f"{number:03}" + "r" * 37 for number in range(2 * SHOWN + 3)]
    for name in wanted:
        put(service, name, "t" * 128, {"source": ["'" * 2_000]}, attributes={"'" * 64: "'" * 256})
    # When one follows the links
    pages = pages_from(browse(), "/routes")
    seen = [name for page in pages for name in re.findall(r'class="name" href="/routes/([^"]*)"', page)]
    # Then each was shown once
    assert seen == wanted


def test_a_route_shows_its_pattern_and_all_else(service, browse) -> None:
    put(service, "orders", policy=Policy.SENDER, attributes={"region": "eu"})
    page = browse().get("/routes/orders").text
    assert f"<pre>{json.dumps(PATTERN, indent=2)}</pre>" in unescape(page)
    for known in ("region=eu", POLICIES[Policy.SENDER], "2026-11-23 09:00:00 UTC", "fanin-route-orders"):
        assert known in page
    assert 'href="/directory/cars"' in page


def test_a_route_shows_who_is_there_for_its_events(service, browse) -> None:
    # Given registrations with and without the attributes of the route
    queue = service.queue("cars", channel=True)
    for name, region in (("a", "eu"), ("b", "us")):
        service.services.directory.register(Register("cars", name, queue, {"region": region}))
    put(service, "orders", attributes={"region": "eu"})
    # Then its page names those with them
    page = browse().get("/routes/orders").text
    assert re.findall(r'class="name" href="/directory/cars/([^"]*)"', page) == ["a"]


def test_a_route_to_nobody_says_what_becomes_of_its_events(service, browse) -> None:
    put(service, "orders", "ghosts")
    assert (
        "Nobody listens to ghosts: events that match reach no queue." in browse().get("/routes/orders").text
    )


def test_every_policy_has_words() -> None:
    assert set(POLICIES) == set(Policy)
