import re
from collections import Counter
from datetime import timedelta
from html import unescape

import pytest

from fanin import Failure
from fanin.console.pages.batches import LOOKED_AT, SIZES, BatchQuery
from fanin.domain.batch import Kind, State
from fanin.errors import InvalidRequest
from tests.unit.console.looking import pages_from


def names(page: str) -> list[str]:
    """Names of the batches on a page, in order."""
    return [unescape(name) for name in re.findall(r'class="name">([^<]*)<', page)]


def opened(service, *keys: str, items: int = 0, **more) -> list[int]:
    found = []
    for key in keys:
        batch = service.tracker.open(user_key=key, **more)
        if items:
            service.tracker.add(batch.batch_id, items)
        found.append(batch.batch_id)
        service.clock.sleep(0.002)  # ids of one millisecond are few
    return found


def test_batches_of_a_state_are_listed(service, browse):
    first, _ = opened(service, "a", "b")
    service.tracker.cancel(first)
    assert names(browse().get("/batches").text) == ["b"]
    assert names(browse().get("/batches?state=cancelled").text) == ["a"]


def test_live_batches_show_how_far_they_are(service, browse):
    # Given a batch of 200 items, of which 50 are done and 3 failed
    group = list(service.tracker.add(service.tracker.open().batch_id, 200))
    service.tracker.ack(group[:50])
    service.tracker.fail([Failure(item, "x") for item in group[50:53]])
    # Then the list says so, also to a screen reader
    page = browse().get("/batches").text
    assert "53 of 200" in page
    assert "53 of 200 done, 3 of them failed" in page
    assert '<span class="count bad">3</span>' in page.replace("\n", "")


def test_every_batch_is_on_one_page_when_paging_through(service, browse):
    # Given more batches than three pages have
    keys = [f"k{number}" for number in range(3 * SIZES[0] + 7)]
    opened(service, *keys)
    # When one follows the links to the end
    seen = [name for page in pages_from(browse(), "/batches") for name in names(page)]
    assert sorted(seen) == sorted(keys)


def test_a_search_by_user_key_finds_all_states(service, browse):
    first, _, _ = opened(service, "shop", "shop", "other")
    service.tracker.cancel(first)
    assert names(browse().get("/batches?search=shop").text) == ["shop", "shop"]
    assert names(browse().get("/batches?search=shop&state=cancelled").text) == ["shop"]


def test_a_search_by_metadata_looks_at_what_is_in_the_state(service, browse):
    opened(service, "a", metadata={"team": "blue"})
    opened(service, *[f"x{number}" for number in range(150)], metadata={"team": "red"})
    found = browse().get("/batches", params={"search": "team=blue"}).text
    assert names(found) == ["a"]
    assert names(browse().get("/batches", params={"search": "team=green"}).text) == []
    # And so does one by the beginning of a key
    found = names(browse().get("/batches", params={"search": "x14*"}).text)
    assert sorted(found) == ["x14", *(f"x{number}" for number in range(140, 150))]


def test_a_search_by_metadata_leads_to_the_other_states(service, browse):
    # Given a batch with metadata that has ended
    (batch_id,) = opened(service, "a", metadata={"team": "blue"})
    service.tracker.cancel(batch_id)
    # When it is searched as the field above all pages does
    browser = browse()
    page = browser.get("/batches", params={"search": "team=blue"}).text
    assert names(page) == []
    assert "Only batches that are open are searched." in page
    links = [unescape(link) for link in re.findall(r'href="([^"]*state=cancelled[^"]*)"', page)]
    assert names(browser.get(links[0]).text) == ["a"]
    assert "are searched" not in browser.get("/batches?search=a").text


def test_a_user_key_that_is_not_found_is_said_to_be_whole(service, browse):
    opened(service, "catalog-42")
    assert "only if it is the whole key" in browse().get("/batches?search=catalog").text
    assert "whole key" not in browse().get("/batches?search=catalog-42").text


def test_a_search_that_finds_nothing_says_how_far_it_looked_and_goes_on(service, browse):
    opened(service, *[f"x{number}" for number in range(LOOKED_AT + 50)])
    page = browse().get("/batches", params={"search": "team=blue"}).text
    assert f"among the {LOOKED_AT:,}" in page
    assert 'rel="next"' in page


def test_a_search_for_a_number_goes_to_the_batch(browse):
    answer = browse().get("/batches?search=%2042%20")
    assert (answer.status_code, answer.headers["location"]) == (303, "/batches/42")


def test_a_search_for_a_number_finds_a_user_key(service, browse):
    # Given batches whose user keys are dates
    service.tracker.open(user_key="20261124")
    wanted = service.tracker.open(user_key="20261125")
    # When one is searched for, then the list has it
    answer = browse().get("/batches?search=20261125")
    assert answer.status_code == 200
    assert f'href="/batches/{wanted.batch_id}"' in answer.text
    assert "20261124" not in answer.text


@pytest.mark.parametrize(
    ("sort", "order"), [("items", ["c", "b", "a"]), ("created", ["c", "b", "a"]), ("failed", ["b", "a", "c"])]
)
def test_a_page_can_be_sorted(service, browse, sort, order):
    for size, key in enumerate("abc", 1):
        opened(service, key, items=size)
        service.clock.sleep(1)
    (odd,) = service.tracker.list(user_key="b").batches
    service.tracker.fail([Failure(f"{service.tracker.missing(odd.batch_id).ranges[0].group}:0", "x")])
    down = names(browse().get(f"/batches?sort={sort}").text)
    up = names(browse().get(f"/batches?sort={sort}&order=up").text)
    assert down[0] == order[0]
    if sort != "failed":
        assert (down, up) == (order, order[::-1])


def test_only_a_kind_is_shown_if_asked_for(service, browse):
    opened(service, "a")
    service.tracker.buffers.define("b", 5)
    assert names(browse().get("/batches?kind=batch").text) == ["a"]
    assert len(names(browse().get("/batches?kind=buffer").text)) == 1


def test_a_full_page_is_small_and_asks_only_for_what_it_draws(service, browse):
    # Given a hundred live batches with long names
    opened(service, *[f"{number:03}" + "&" * 253 for number in range(SIZES[-1] + 20)], items=70)
    calls: Counter[str] = Counter()
    service.on_call = lambda access, when: calls.update([access] if when == "before" else [])
    # When they are shown on one page
    page = browse().get(f"/batches?size={SIZES[-1]}")
    # Then it lists once, and reads as many batches as it shows
    assert len(names(page.text)) == SIZES[-1]
    assert calls["batches.page"] == 1
    assert calls["words.read_tallied"] <= 2 * SIZES[-1]
    assert len(page.content) < 100_000


def test_an_address_says_what_is_shown():
    query = BatchQuery.of(
        {"state": "closed", "kind": "scatter", "sort": "items", "order": "up", "size": "50"}
    )
    assert query == BatchQuery(State.CLOSED, "", Kind.SCATTER, "items", down=False, size=50)
    assert BatchQuery.of({key: str(value) for key, value in query.address().items() if value}) == query


@pytest.mark.parametrize("bad", [{"state": "x"}, {"kind": "x"}, {"sort": "x"}, {"size": "7"}, {"size": "x"}])
def test_an_address_that_says_something_else_is_refused(bad):
    with pytest.raises(InvalidRequest, match="is one of"):
        BatchQuery.of(bad)


def test_a_key_that_turns_the_direction_of_text_is_shown_as_it_is_written(service, browse):
    opened(service, "invoice\u202egnp.exe")
    page = browse().get("/batches").text
    assert ("invoice\\u202egnp.exe" in page, "\u202e" in page) == (True, False)


def test_a_batch_that_ended_before_its_deadline_shows_none(service, browse):
    batch_id = service.tracker.open(deadline=timedelta(hours=1)).batch_id
    assert "Deadline" in browse().get(f"/batches/{batch_id}").text
    service.tracker.cancel(batch_id)
    assert "Deadline" not in browse().get(f"/batches/{batch_id}").text
