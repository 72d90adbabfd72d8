import re
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from fanin import Failure
from fanin.console import Options, console
from fanin.console.pages.heading import COUNTED, Heading
from fanin.console.pages.progress import Row
from fanin.domain.batch import OpenBatch
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import ItemRange
from tests.unit.client.https.conftest import Gateway, https
from tests.unit.console.looking import text_of

PAGES = [*Heading.tabs]


def address(batch_id: object, tab: str) -> str:
    return f"/batches/{batch_id}/{tab}".rstrip("/")


@pytest.fixture(params=PAGES, ids=lambda name: name or "batch")
def tab(request) -> str:
    return request.param


def test_all_pages_say_how_far_the_batch_is(service, browse, tab):
    # Given a batch of which 50 items are done, and 3 of these failed
    with service.tracker.batch(user_key="catalog") as batch:
        group = list(batch.add(200))
    service.tracker.ack(group[3:50])
    service.tracker.fail([Failure(item, "x") for item in group[:3]])
    # Then each of its pages says so
    shown = text_of(browse().get(address(batch.id, tab)).text)
    assert "catalog" in shown
    # And so does the picture of all items, of what it has read itself
    done = "Done 50 of 200 Failed 3" if tab == "picture" else "Done 50 of 200 · 25.0 % Failed 3"
    assert done in shown


def test_all_pages_link_to_each_other_and_mark_the_one_that_is_shown(service, browse, tab):
    batch = service.tracker.open()
    page = browse().get(address(batch.batch_id, tab)).text
    for other in PAGES:
        assert f'href="{address(batch.batch_id, other)}"' in page
    assert re.findall(r'href="([^"]*)" aria-current="page"', page)[1:] == [address(batch.batch_id, tab)]


def test_a_page_with_the_longest_texts_there_can_be_is_under_100_kb(service, browse, tab):
    # Given a batch with as many and as long texts as it may have, of a sign that is long in a page
    with service.tracker.batch(
        user_key="&" * 256,
        metadata={f"{number:02}" + "&" * 62: "&" * 256 for number in range(16)},
        totals=["a" * 32, "b" * 32, "c" * 32, "d" * 32],
    ) as batch:
        group = list(batch.add(400))
    failures = [
        Failure(item, "abcdefghij"[at % 10] * (at // 10 + 1) + "&" * 900, source="&" * 1024)
        for at, item in enumerate(group[::2])
    ]
    service.services.ledger.mark(failures).whole()
    service.tracker.ack(group[1::2][:25])
    browser = browse()
    # Then no page is too long, whether the batch is live or has ended
    assert len(browser.get(address(batch.id, tab)).content) < 100_000
    service.tracker.cancel(batch.id)
    assert len(browser.get(address(batch.id, tab)).content) < 100_000


def test_batches_of_a_billion_items_are_shown(service, browse, tab):
    with service.tracker.batch() as batch:
        group = batch.add(10**9)
    service.services.ledger.mark([ItemRange(group.prefix, 0, 4 * 10**8)]).whole()
    answer = browse().get(address(batch.id, tab))
    assert answer.status_code == 200
    assert len(answer.content) < 100_000
    assert "of 1,000,000,000" in text_of(answer.text)


@pytest.mark.parametrize("mode", ["exact", "estimated"])
def test_batches_without_items_are_shown(service, browse, tab, mode):
    batch = service.tracker.open(mode=mode)
    assert browse().get(address(batch.batch_id, tab)).status_code == 200
    service.tracker.close(batch.batch_id)
    assert browse().get(address(batch.batch_id, tab)).status_code == 200


def test_estimated_batches_are_shown(service, browse, tab):
    with service.tracker.batch(mode="estimated") as batch:
        batch.add(10)
    shown = text_of(browse().get(address(batch.id, tab)).text)
    assert "estimated: repeats count twice" in shown


def test_what_is_no_batch_any_more_or_never_was_one_is_said(service, browse, tab):
    removed = service.tracker.open().batch_id
    service.tracker.cancel(removed)
    service.services.ledger.remove(removed)
    for path, status, said in (
        ("abc", 400, "could not be shown"),
        ("17", 404, "there is no batch 17"),
        (removed, 410, "was removed"),
    ):
        answer = browse().get(address(path, tab))
        assert answer.status_code == status
        assert said in answer.text


def test_items_of_a_small_batch_are_counted_and_of_a_large_one_bounds_are_read(service, browse):
    # Given two batches, each with a hole below its last levels
    shown = []
    for items in (COUNTED, 64 * COUNTED):
        with service.tracker.batch() as batch:
            group = batch.add(items)
        service.services.ledger.mark(
            [ItemRange(group.prefix, 0, 100), ItemRange(group.prefix, 101, items)]
        ).whole()
        shown.append(text_of(browse().get(f"/batches/{batch.id}/cost").text))
    # Then the first says exactly how many are done, and the second at least how many
    assert f"Done {COUNTED - 1:,} of" in shown[0]
    assert "Done at least" in shown[1]


def test_times_say_what_will_happen(service, browse):
    batch = service.tracker.open(
        deadline=timedelta(hours=2), idle_ttl=timedelta(hours=5), on_deadline="complete"
    )
    shown = text_of(browse().get(f"/batches/{batch.batch_id}").text)
    assert "Deadline 2026-11-23 11:00:00 UTC, in 2 h; then it completes, with what is missing" in shown
    assert "Will be orphaned in 5 h, if nothing happens until then" in shown


def test_an_ended_batch_says_how_long_it_took(service, browse):
    with service.tracker.batch() as batch:
        group = batch.add(600)
    service.advance(timedelta(minutes=2))
    service.tracker.ack(group)
    shown = text_of(browse().get(f"/batches/{batch.id}").text)
    assert "Took 2 min 5.0/s on average" in shown
    assert "it took 2 min" in shown


def test_a_batch_without_activity_is_said_to_be_stalled(service, browse):
    with service.tracker.batch(stall_after=timedelta(minutes=10)) as batch:
        batch.add(3)
    browser = browse()
    assert "stalled" not in browser.get(f"/batches/{batch.id}").text
    service.advance(timedelta(minutes=20))
    assert "stalled: last activity" in text_of(browser.get(f"/batches/{batch.id}").text)


def test_activity_that_may_not_be_noted_yet_is_no_stall(service):
    # Given a batch whose activity is noted in steps
    batch = service.tracker.open(stall_after=timedelta(minutes=10))
    assert batch.step
    # Then it is stalled only when it surely was without activity for so long
    at = batch.touched_at + batch.step + 600_000
    assert Heading(Row(batch, 0), at - 1).stalled_at is None
    assert Heading(Row(batch, 0), at).stalled_at == at


def test_relations_are_links(service, browse):
    # Given a batch that does the work of an item, and failed
    with service.tracker.batch() as parent:
        item = parent.add(5)[3]
    with service.tracker.batch(parent_item=item) as child:
        group = list(child.add(2))
    queue = service.queue()
    service.services.ledger.mark([Failure(one, "x", KeptMessage("m"), source=queue) for one in group]).whole()
    retry = service.services.redrives.redrive(child.id).batch_id
    # Then it links to its parent and to the batch that retries it, and that one links back
    page = browse().get(f"/batches/{child.id}").text
    assert f'item 3 of batch <a href="/batches/{parent.id}">' in page
    assert f'<dt>Retried by</dt><dd><a href="/batches/{retry}">' in page
    assert f'<dt>Retry of</dt><dd><a href="/batches/{child.id}">' in browse().get(f"/batches/{retry}").text


def test_totals_are_shown_with_those_of_the_batches_before(service, browse):
    # Given a batch of which an item failed, and its retry, both with totals
    queue = service.queue()
    with service.tracker.batch(totals=["rows", "cents"]) as batch:
        group = list(batch.add(2))
    service.tracker.ack(group[0], totals={"rows": 2**53, "cents": -5})
    service.services.ledger.mark([Failure(group[1], "x", KeptMessage("m"), source=queue)]).whole()
    retry = service.services.redrives.redrive(batch.id).batch_id
    # Then both pages have all digits of the sums
    shown = text_of(browse().get(f"/batches/{batch.id}").text)
    assert "Totals exact Total This batch rows 9,007,199,254,740,992 cents -5" in shown
    shown = text_of(browse().get(f"/batches/{retry}").text)
    assert "rows 0 9,007,199,254,740,992 9,007,199,254,740,992 cents 0 -5 -5" in shown


def test_batches_of_patterns_link_to_their_own_pages(service, browse):
    frame = service.services.ledger.open(OpenBatch(kind="frame", size=3))
    assert f'href="/frames/{frame.batch_id}"' in browse().get(f"/batches/{frame.batch_id}").text


def test_a_page_is_the_same_over_https(service, tab):
    """A console on a developer's machine reads the API; the one behind it, the tables."""
    # Given a batch with all that a batch may have
    queue = service.queue()
    with service.tracker.batch(
        user_key="all", metadata={"team": "a"}, totals=["rows"], stall_after=timedelta(minutes=10)
    ) as batch:
        group = list(batch.add(300))
    service.tracker.ack(group[0], totals={"rows": 5})
    message = KeptMessage("m", group_id="g")
    service.services.ledger.mark([Failure(item, "x", message, 3, queue) for item in group[1:9]]).whole()
    service.tracker.cancel(batch.id)
    service.services.redrives.redrive(batch.id)
    # When a console asks over HTTPS, and another one directly
    pages = [
        TestClient(console(fanin, Options(sessions=False), now=service.clock.now)).get(address(batch.id, tab))
        for fanin in (https(Gateway(service.services)), service.services)
    ]
    assert pages[0].status_code == 200
    assert pages[0].text == pages[1].text
