"""The pages of the directory and of routes."""

import json
import re
from html import unescape

import pytest

from fanin.console.pages.directory import PAGES, POLICIES, SHOWN
from fanin.domain.directory import Policy, PutRoute, Register
from tests.unit.console.calls import Calls
from tests.unit.console.looking import HOSTILE, following, live_of, pages_from


@pytest.fixture
def queue(service) -> str:
    return service.queue("cars", channel=True)


def names(page: str) -> list[str]:
    return re.findall(r'class="name" href="/directory/[^"/]*/([^"/]*)"', page)


def registered(service, queue: str, name: str, topic: str = "cars", lease: int = 600, **attributes) -> None:
    service.services.directory.register(Register(topic, name, queue, attributes, lease))


def test_the_directory_asks_for_a_topic_and_names_those_of_the_routes(service, browse):
    for name, topic in (("a", "cars"), ("b", "audit"), ("c", "cars")):
        service.services.routing.put(PutRoute(name, {"source": [name]}, topic))
    page = browse().get("/directory").text
    assert re.findall(r'<li><a href="/directory/([^"]*)">', page) == ["audit", "cars"]
    assert 'name="topic"' in page
    assert "<code>fanin directory register TOPIC NAME QUEUE</code>" in page


def test_the_form_leads_to_a_topic(browse):
    asked = {"topic": " cars ", "attribute": ["region=eu", "", "model=m&m=1"]}
    answer = browse().get("/directory", params=asked)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/directory/cars?attribute=region%3Deu&attribute=model%3Dm%26m%3D1"


def test_a_topic_lists_who_listens_and_until_when(service, queue, browse):
    registered(service, queue, "vin-1", region="eu")
    registered(service, queue, "vin-2", lease=3_600, region="us")
    registered(service, queue, "other", topic="buses")
    service.clock.sleep(500)
    page = browse().get("/directory/cars").text
    assert names(page) == ["vin-1", "vin-2"]
    first, second = page.split('<th scope="row">')[1:]
    assert "in 1 min 40 s" in first
    assert "ends soon" in first
    assert "region=eu" in first
    assert queue in first
    assert "ends soon" not in second


def test_a_registration_whose_lease_is_over_is_not_there(service, queue, browse):
    registered(service, queue, "vin-1", lease=60)
    service.clock.sleep(61)
    page = browse().get("/directory/cars").text
    assert names(page) == []
    assert "<code>fanin directory register cars NAME QUEUE</code>" in page
    assert browse().get("/directory/cars/vin-1").status_code == 404


def test_a_topic_says_by_which_routes_its_events_come(service, queue, browse):
    service.services.routing.put(PutRoute("orders", {"source": ["orders"]}, "cars"))
    service.services.routing.put(PutRoute("other", {"source": ["orders"]}, "audit"))
    page = browse().get("/directory/cars").text
    assert re.findall(r'href="/routes/([^"]*)"', page) == ["orders"]


def test_only_those_with_all_attributes_are_shown(service, queue, browse):
    registered(service, queue, "a", region="eu", model="m1")
    registered(service, queue, "b", region="eu", model="m2")
    registered(service, queue, "c", region="us", model="m1")
    page = browse().get("/directory/cars", params={"attribute": ["region=eu", "model=m1", " "]}).text
    assert names(page) == ["a"]
    # And the form has them, with room for one more
    assert re.findall(r'name="attribute"(?: value="([^"]*)")?', page) == ["region=eu", "model=m1", ""]


def test_few_among_many_are_found_page_by_page(service, queue, browse):
    # Given a registration that stands behind more others than one look reaches
    for number in range(SHOWN * PAGES + 5):
        registered(service, queue, f"vin-{number:04}", region="us")
    registered(service, queue, "z", region="eu")
    browser, calls = browse(), Calls(service)
    page = browse().get("/directory/cars?attribute=region%3Deu").text
    # Then the first page says that it found none so far, and made no more calls than it may
    assert names(page) == []
    assert "on this page" in page
    assert calls == {"directory.page": PAGES, "routing.page": 1}
    # And the next page has it, and nothing else
    assert names(browser.get(following(page)).text) == ["z"]


def test_everyone_is_on_one_page_when_paging_through(service, queue, browse):
    wanted = [f"vin-{number:04}" for number in range(2 * SHOWN + 3)]
    for name in wanted:
        registered(service, queue, name)
    seen = [name for page in pages_from(browse(), "/directory/cars") for name in names(page)]
    assert seen == wanted


def test_a_full_page_is_small_whatever_is_registered(service, queue, browse):
    attributes = {f"{number:02}" + "'" * 62: "'" * 256 for number in range(16)}
    for number in range(SHOWN):
        registered(service, queue, f"{number:03}" + "v" * 125, topic="t" * 128, **attributes)
    page = browse().get("/directory/" + "t" * 128)
    assert len(names(page.text)) == SHOWN
    assert len(page.content) < 100_000
    assert "and 12 more" in page.text


def test_a_registration_shows_all_that_is_known(service, queue, browse):
    registered(service, queue, "vin:1.a", region="eu", note=HOSTILE)
    page = browse().get("/directory/cars/vin%3A1.a").text
    assert queue in page
    assert "10 min" in page
    assert "2026-11-23 09:00:00 UTC" in page
    assert "<script>alert" not in page
    assert HOSTILE in unescape(page)
    assert 'href="/directory/cars"' in page


def test_the_live_view_follows_heartbeats(service, queue, browse):
    registered(service, queue, "vin-1", region="eu")
    browser = browse()
    page = browser.get("/directory/cars?attribute=region%3Deu").text
    address = live_of(page)
    assert address == "/live/directory/cars?attribute=region%3Deu"
    service.clock.sleep(500)
    assert "ends soon" in browser.get(address).text
    registered(service, queue, "vin-1", region="eu")
    assert "ends soon" not in browser.get(address).text


PATTERN = {"source": ["orders"], "detail": {"region": ["eu", "us"]}}


def put(service, name: str, topic: str = "cars", pattern=PATTERN, **more) -> None:
    service.services.routing.put(PutRoute(name, pattern, topic, **more))


def test_routes_are_listed(service, browse):
    put(service, "orders", policy=Policy.FIRST, attributes={"region": "eu"})
    put(service, "audit", "audit")
    page = browse().get("/routes").text
    assert re.findall(r'class="name" href="/routes/([^"]*)"', page) == ["audit", "orders"]
    row = page.partition('href="/routes/orders"')[2]
    assert 'href="/directory/cars"' in row
    assert "first" in row
    assert "region=eu" in row
    assert json.dumps(PATTERN) in unescape(row)


def test_every_route_is_on_one_small_page_when_paging_through(service, browse):
    # Given more routes than two pages have, with names, topics and patterns as long as they may be
    wanted = [f"{number:03}" + "r" * 37 for number in range(2 * SHOWN + 3)]
    for name in wanted:
        put(service, name, "t" * 128, {"source": ["'" * 2_000]}, attributes={"'" * 64: "'" * 256})
    pages = pages_from(browse(), "/routes")
    seen = [name for page in pages for name in re.findall(r'class="name" href="/routes/([^"]*)"', page)]
    assert seen == wanted


def test_a_route_shows_its_pattern_and_all_else(service, browse):
    put(service, "orders", policy=Policy.SENDER, attributes={"region": "eu"})
    page = browse().get("/routes/orders").text
    assert f"<pre>{json.dumps(PATTERN, indent=2)}</pre>" in unescape(page)
    for known in ("region=eu", POLICIES[Policy.SENDER], "2026-11-23 09:00:00 UTC", "fanin-route-orders"):
        assert known in page
    assert 'href="/directory/cars"' in page


def test_a_route_shows_who_is_there_for_its_events(service, browse):
    # Given registrations with and without the attributes of the route
    queue = service.queue("cars", channel=True)
    for name, region in (("a", "eu"), ("b", "us")):
        service.services.directory.register(Register("cars", name, queue, {"region": region}))
    put(service, "orders", attributes={"region": "eu"})
    # Then its page names those with them
    page = browse().get("/routes/orders").text
    assert re.findall(r'class="name" href="/directory/cars/([^"]*)"', page) == ["a"]


def test_a_route_to_nobody_says_what_becomes_of_its_events(service, browse):
    put(service, "orders", "ghosts")
    assert (
        "Nobody listens to ghosts: events that match reach no queue." in browse().get("/routes/orders").text
    )


def test_every_policy_has_words():
    assert set(POLICIES) == set(Policy)
