"""Results of a batch, and single items by ordinal and by key."""

from __future__ import annotations

from html import unescape
from urllib.parse import quote

import pytest

from fanin import Done, Failure
from fanin.console.pages.items import EACH, ROWS, WHOLE
from fanin.console.pages.picture import NodeAsked, view
from tests.unit.console.looking import HOSTILE, pages_from, words


@pytest.fixture
def keyed(service):
    """A batch whose items have hostile keys and results: one large, one failed, one missing."""
    with service.tracker.batch(results=True) as batch:
        items = [one.item for one in batch.add(keys=[f"{HOSTILE}/{n}" for n in range(ROWS + 10)])]
    service.tracker.ack([Done(item, result={HOSTILE: n}) for n, item in enumerate(items) if n > 2])
    service.tracker.ack(Done(items[0], result="<&>" * 100_000))
    service.tracker.fail([Failure(items[1], "no")])
    return batch.id


def test_results_are_paged_with_their_items_and_keys_and_each_is_bounded(keyed, browse) -> None:
    pages = list(pages_from(browse(), f"/batches/{keyed}/results"))
    assert len(pages) == 2
    said = [words(page) for page in pages]
    assert f"5 {HOSTILE}/5 {{" in said[0]
    assert f'": {ROWS + 9}}}' in said[1]
    assert "… 293.0 KB" in said[0]
    assert 0 < unescape(pages[0]).count("<&>") <= EACH // 3
    assert f" 2 {HOSTILE}" not in said[0]
    assert "<script>alert" not in "".join(pages)


def test_a_batch_without_results_says_so(service, browse) -> None:
    batch = service.tracker.open()
    assert "was not opened for them" in browse().get(f"/batches/{batch.batch_id}/results").text


def test_an_item_is_found_by_its_key(keyed, browse) -> None:
    browser = browse()
    assert "Find an item by its key" in browser.get(f"/batches/{keyed}/missing").text
    found = browser.get(f"/batches/{keyed}/items?key={quote(f'{HOSTILE}/5')}")
    assert (found.status_code, found.headers["location"]) == (303, f"/batches/{keyed}/items/5")
    assert f"Key {HOSTILE}/5 Item id" in words(browser.get(found.headers["location"]).text)
    nobody = browser.get(f"/batches/{keyed}/items?key=nobody")
    assert (nobody.status_code, "nobody" in words(nobody.text)) == (404, True)


def test_the_page_of_an_item_says_what_became_of_it_and_the_beginning_of_its_result(keyed, browse) -> None:
    large, failed, missing = (browse().get(f"/batches/{keyed}/items/{n}").text for n in range(3))
    assert "of 300,002 characters" in words(large)
    assert len(large) < 3 * WHOLE
    assert f'href="/batches/{keyed}/failures/1"' in failed
    assert ("State pending" in words(missing), "None so far" in missing) == (True, True)


@pytest.mark.parametrize("path", ["failures", "failures/1", "missing", "why", "picture", "", "results"])
def test_keys_stand_beside_items(keyed, browse, path) -> None:
    assert f"{HOSTILE}/" in words(browse().get(f"/batches/{keyed}/{path}".rstrip("/")).text)


def test_the_picture_of_a_batch_that_drains_grows(service, browse) -> None:
    batch = service.tracker.open()
    group = service.tracker.add(batch.batch_id, 1)
    service.tracker.close(batch.batch_id, when="drained")
    console = browse().app.state.console
    before = view(console, NodeAsked(batch.batch_id))
    service.tracker.add(batch.batch_id, 4_100, item=group[0])
    after = view(console, NodeAsked(batch.batch_id))
    assert before.facts != after.facts
    assert "All 4,101 items" in after.fragments["picture-path"]
    assert "its items have added 4,100" in words(browse().get(f"/batches/{batch.batch_id}").text)
