"""The smaller pages of one batch."""

import re
from html import unescape
from urllib.parse import quote

import pytest

from fanin import Done, Failure
from fanin.console.pages.tabs import EACH, RANGES, ROWS, WHOLE
from fanin.console.rendering import code_marks
from fanin.domain.costs import spent
from fanin.domain.marks import ItemRange
from fanin.domain.prices import DEFAULT, dollars
from fanin.domain.targets import Target, TargetType, When
from tests.unit.console.calls import counted
from tests.unit.console.looking import HOSTILE, pages_from, text_of, words


def test_all_findings_are_shown_with_severity_advice_and_evidence(service, browse):
    # Given an open batch of which items were never sent
    batch = service.tracker.open(on_failure="hold")
    group = list(service.tracker.add(batch.batch_id, 10))
    service.tracker.fail([Failure(group[0], HOSTILE)])
    expected = service.tracker.why(batch.batch_id)
    page = browse().get(f"/batches/{batch.batch_id}/why").text
    shown = text_of(page)
    for finding in expected.findings:
        assert f"{finding.severity} {finding.title}" in shown
        assert f'class="severity {finding.severity}"' in page
        for name, value in finding.evidence.items():
            assert name.replace("_", " ") in shown
            if isinstance(value, int):
                assert f"{value:,}" in shown
        assert f"code {finding.code}" in shown
    # And what is known of the missing items
    assert "held failed, and held" in shown
    assert "<script>alert" not in page


def test_a_severity_is_a_word_and_a_shape(service, browse):
    batch = service.tracker.open()
    page = browse().get(f"/batches/{batch.batch_id}/why").text
    assert '<span class="severity-word">' in page
    assert '<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">' in page


def test_an_ended_batch_says_how_it_ended(service, browse):
    batch = service.tracker.open()
    service.tracker.cancel(batch.batch_id)
    shown = text_of(browse().get(f"/batches/{batch.batch_id}/why").text)
    assert "How it ended" in shown
    assert "The batch has ended: it is cancelled" in shown


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("run `fanin redrive` now", "run <code>fanin redrive</code> now"),
        ("`a`", "<code>a</code>"),
        ("`<b>` & <i>", "<code>&lt;b&gt;</code> &amp; &lt;i&gt;"),
        ("one ` alone <b>", "one ` alone &lt;b&gt;"),
        ("", ""),
    ],
)
def test_what_stands_between_backticks_is_code(text, html):
    assert code_marks(text) == html


HOOK = Target(TargetType.WEBHOOK, When.FAILED, url="https://hooks.example.com/very-secret")


def test_targets_are_shown_with_what_became_of_them(service, browse):
    # Given a batch with a queue and a webhook
    queue = Target(TargetType.SQS, queue_url=service.queue("ends", channel=True))
    with service.tracker.batch(on_end=[queue, HOOK]) as batch:
        group = batch.add(1)
    browser = browse()
    address = f"/batches/{batch.id}/targets"
    page = browser.get(address).text
    assert "1 sqs ends any end pending 0" in text_of(page)
    assert "2 webhook https://hooks.example.com/… any other end pending 0" in text_of(page)
    assert "very-secret" not in page
    service.tracker.ack(group)
    # Then the queue was told, and the webhook did not want to be
    shown = text_of(browser.get(address).text)
    assert "1 sqs ends any end delivered" in shown
    assert "any other end skipped" in shown


def test_a_batch_without_targets_is_not_asked_for_them(service, browse):
    batch = service.tracker.open()
    calls = counted(service)
    assert "Nobody asked to be told" in browse().get(f"/batches/{batch.batch_id}/targets").text
    assert calls == ["ledger.status"]


def test_the_cost_follows_from_what_the_row_says(service, browse):
    # Given a batch of which 1,000 items are done, 10 of them failed
    with service.tracker.batch() as batch:
        group = list(batch.add(5_000))
    service.tracker.ack(group[10:1_000])
    service.tracker.fail([Failure(item, "x") for item in group[:10]])
    # Then its page has the figures of that arithmetic
    shown = text_of(browse().get(f"/batches/{batch.id}/cost").text)
    for way, whole in zip(spent(5_000, 1_000, 10), spent(5_000, 5_000, 10), strict=True):
        so_far, in_all = (dollars(one.dollars(DEFAULT)) for one in (way, whole))
        calls = f"{int(way.usage.api_requests):,} {int(way.usage.queue_requests):,}"
        assert f"{way.way} {way.writes:,} {calls} {so_far} {in_all}" in shown.replace("&lt;", "<")


def test_it_says_that_it_is_an_estimate_and_what_it_leaves_out(service, browse):
    shown = text_of(browse().get(f"/batches/{service.tracker.open().batch_id}/cost").text)
    assert "An estimate" in shown
    assert "What it leaves out" in shown
    assert "List prices of us-east-1, 2026-08-15" in shown


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "$0.0000"), (0.00001, "< $0.0001"), (0.0625, "$0.0625"), (1, "$1.00"), (1234.5, "$1,234.50")],
)
def test_amounts_are_written_for_people(amount, text):
    assert dollars(amount) == text


@pytest.fixture
def keyed(service):
    """A batch whose items have hostile keys and results: one large, one failed, one missing."""
    with service.tracker.batch(results=True) as batch:
        items = [one.item for one in batch.add(keys=[f"{HOSTILE}/{n}" for n in range(ROWS + 10)])]
    service.tracker.ack([Done(item, result={HOSTILE: n}) for n, item in enumerate(items) if n > 2])
    service.tracker.ack(Done(items[0], result="<&>" * 100_000))
    service.tracker.fail([Failure(items[1], "no")])
    return batch.id


def test_results_are_paged_with_their_items_and_keys_and_each_is_bounded(keyed, browse):
    pages = list(pages_from(browse(), f"/batches/{keyed}/results"))
    assert len(pages) == 2
    said = [words(page) for page in pages]
    assert f"5 {HOSTILE}/5 {{" in said[0]
    assert f'": {ROWS + 9}}}' in said[1]
    assert "… of 300,002 characters" in said[0]
    assert 0 < unescape(pages[0]).count("<&>") <= EACH // 3
    assert f" 2 {HOSTILE}" not in said[0]
    assert "<script>alert" not in "".join(pages)


def test_a_batch_without_results_says_so(service, browse):
    batch = service.tracker.open()
    assert "was not opened for them" in browse().get(f"/batches/{batch.batch_id}/results").text


def test_an_item_is_found_by_its_key(keyed, browse):
    browser = browse()
    assert "Find an item by its key" in browser.get(f"/batches/{keyed}/missing").text
    found = browser.get(f"/batches/{keyed}/items?key={quote(f'{HOSTILE}/5')}")
    assert (found.status_code, found.headers["location"]) == (303, f"/batches/{keyed}/items/5")
    assert f"Key {HOSTILE}/5 Item id" in words(browser.get(found.headers["location"]).text)
    nobody = browser.get(f"/batches/{keyed}/items?key=nobody")
    assert (nobody.status_code, "nobody" in words(nobody.text)) == (404, True)


def test_the_page_of_an_item_says_what_became_of_it_and_the_beginning_of_its_result(keyed, browse):
    large, failed, missing = (browse().get(f"/batches/{keyed}/items/{n}").text for n in range(3))
    assert "of 300,002 characters" in words(large)
    assert len(large) < 3 * WHOLE
    assert f'href="/batches/{keyed}/failures/1"' in failed
    assert ("State pending" in words(missing), "None so far" in missing) == (True, True)


@pytest.mark.parametrize("path", ["failures", "failures/1", "missing", "why", "picture", "", "results"])
def test_keys_stand_beside_items(keyed, browse, path):
    assert f"{HOSTILE}/" in words(browse().get(f"/batches/{keyed}/{path}".rstrip("/")).text)


def test_the_picture_of_a_batch_that_drains_grows(service, browse):
    batch = service.tracker.open()
    group = service.tracker.add(batch.batch_id, 1)
    service.tracker.close(batch.batch_id, when="drained")
    browser = browse()
    before = browser.get(f"/live/batches/{batch.batch_id}/picture").text
    service.tracker.add(batch.batch_id, 4_100, item=group[0])
    after = browser.get(f"/live/batches/{batch.batch_id}/picture").text
    assert "All 4,101 items" in after
    assert "All 4,101 items" not in before
    assert "its items have added 4,100" in words(browse().get(f"/batches/{batch.batch_id}").text)


def test_missing_ranges_are_listed_with_group_ids_that_can_be_used(service, browse):
    # Given a batch with two holes
    with service.tracker.batch() as batch:
        group = list(batch.add(100))
    service.tracker.ack(group[1:40] + group[60:])
    page = browse().get(f"/batches/{batch.id}/missing").text
    assert "0 1" in text_of(page)
    assert "40 \u2013 59 20" in text_of(page)
    # When the items of the groups on the page are acknowledged
    groups = re.findall(r'<code class="copy">([^<]*)</code>', page)
    service.services.ledger.mark([ItemRange(group) for group in groups]).whole()
    assert "Nothing is missing." in browse().get(f"/batches/{batch.id}/missing").text


def test_all_ranges_are_on_one_page_when_paging_through(service, browse):
    with service.tracker.batch() as batch:
        group = list(batch.add(6 * RANGES))
    service.tracker.ack(group[::2])
    pages = pages_from(browse(), f"/batches/{batch.id}/missing")
    seen = [at for page in pages for at in re.findall(r'<th scope="row" class="figures">([\d,]+)', page)]
    assert [int(at.replace(",", "")) for at in seen] == list(range(1, 6 * RANGES, 2))


def test_an_estimated_batch_does_not_know(service, browse):
    with service.tracker.batch(mode="estimated") as batch:
        batch.add(3)
    calls = counted(service)
    shown = browse().get(f"/batches/{batch.id}/missing").text
    assert "does not know which are missing" in shown
    assert calls == ["ledger.status"]
