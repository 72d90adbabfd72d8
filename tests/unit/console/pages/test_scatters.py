"""Scatters: their list, and each with its recipients."""

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest

from fanin import Failure
from fanin.console.pages.patterns import PAYLOAD, RECIPIENTS, SCATTERS
from fanin.domain.batch import State
from fanin.domain.claim_checks import ClaimCheckRequest
from fanin.domain.scatter import Gathered, Recipient, Reply, Scatter, Scattered
from tests.unit.console.calls import Calls
from tests.unit.console.looking import live_of, words


@pytest.fixture
def queue(service) -> str:
    return service.queue("cars", channel=True)


def received(service, queue: str) -> list[str]:
    """The items of the messages of a queue, in the order of the recipients."""
    found: list[str] = []
    while messages := service.sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    ).get("Messages"):
        found += [one["MessageAttributes"]["fanin-item"]["StringValue"] for one in messages]
    return sorted(found, key=lambda item: int(item.rpartition(":")[2]))


def scattered(service, queue: str, recipients: int | list[Recipient] = 3, **more) -> tuple[int, list[str]]:
    """Start a scatter; its id, and the items of its recipients."""
    if isinstance(recipients, int):
        recipients = [Recipient(f"car {number}", queue) for number in range(recipients)]
    started = service.services.scatters.start(Scatter("report", recipients, **more))
    return started.batch.batch_id, received(service, queue)


def test_the_list_has_scatters_only_and_says_how_far_they_are(service, queue, browse):
    # Given a batch, and a scatter of three, of which one has replied and one failed
    service.tracker.open(user_key="of another kind")
    _, items = scattered(service, queue, user_key="weekly")
    service.services.scatters.reply([Reply(items[0], "here")])
    service.tracker.fail([Failure(items[1], "engine off")])
    # Then the list shows the scatter, and these figures
    page = browse().get("/scatters").text
    assert "of another kind" not in page
    assert "weekly" in page
    figures = re.findall(r'<td class="figure">(.*?)</td>', page, re.DOTALL)
    assert [words(figure).strip() for figure in figures] == ["1", "1", "1"]
    assert "in 2 min" in page


def test_a_full_list_is_small_whatever_callers_write(service, queue, browse):
    for _ in range(SCATTERS.sizes[-1]):
        scattered(service, queue, 1, user_key="'" * 256)
        service.clock.sleep(0.002)  # ids of one millisecond are few
    page = browse().get(f"/scatters?size={SCATTERS.sizes[-1]}")
    assert page.text.count("0 of 1 done") == SCATTERS.sizes[-1]
    assert len(page.content) < 100_000


def test_the_links_of_the_list_stay_in_it(service, queue, browse):
    batch_id, _ = scattered(service, queue)
    page = browse().get("/scatters").text
    assert f'href="/scatters/{batch_id}"' in page
    assert 'href="/scatters?state=closed&amp;sort=failed"' in page
    assert 'data-live="/live/scatters"' in page
    assert browse().get("/scatters?search=42").headers["location"] == "/scatters/42"


def test_recipients_are_shown_by_their_state(service, queue, browse):
    # Given recipients that have replied, failed, and done neither
    batch_id, items = scattered(
        service, queue, 4, user_key="weekly", quorum=3, max_retries=5, correlation_id="mine", totals=["km"]
    )
    service.services.scatters.reply([Reply(items[0], {"km": 7}, totals={"km": 7}), Reply(items[3], [1])])
    service.tracker.fail([Failure(items[1], "engine off")])
    page = browse().get(f"/scatters/{batch_id}").text
    missing, failed, replied = page.split('<tr class="group">')[1:]
    assert "car 2" in missing
    assert "car 1" in failed
    assert "engine off" in failed
    assert "car 0" in replied
    assert "car 3" in replied
    assert '{"km": 7}' in unescape(replied)
    # And above them is how far it is
    said = words(page)
    assert "4: 2 replied, 1 failed, 1 missing" in said
    assert "with 3 replies 1 to go" in said
    assert "0 of 5 5 left" in said
    assert "km 7" in said
    assert "mine" in said


def test_the_next_retry_is_shown_and_then_the_end(service, queue, browse):
    batch_id, _ = scattered(service, queue, timeout=60, max_retries=1)
    assert "Next retry in 1 min to those who are missing" in words(browse().get(f"/scatters/{batch_id}").text)
    service.advance(timedelta(seconds=61))
    assert "Given up in 59 s if some are still missing" in words(browse().get(f"/scatters/{batch_id}").text)
    service.advance(timedelta(seconds=61))
    page = words(browse().get(f"/scatters/{batch_id}").text)
    assert "Ended" in page
    assert "partial" in page
    assert "no answer yet" not in page


def test_a_scatter_whose_recipients_are_being_listed_says_so(service, queue, browse):
    # Given a scatter whose recipients are not all known
    def listing(found: Scattered) -> Scattered:
        return replace(found, batch=replace(found.batch, state=State.OPEN, items=0))

    batch_id, _ = scattered(service, queue)
    Calls(service, {"scatters.status": listing})
    # Then its page says that it is starting, and no figures that nobody knows
    page = browse().get(f"/scatters/{batch_id}").text
    assert "are still being listed" in page
    assert "Listing resumes" in page
    assert "Recipients</dt>" not in page


def test_each_section_has_pages_of_its_own(service, queue, browse):
    # Given more missing and more replied than a page shows
    batch_id, items = scattered(service, queue, 4 * RECIPIENTS + 6)
    service.services.scatters.reply([Reply(item, "ok") for item in items[: 2 * RECIPIENTS + 3]])
    browser, seen = browse(), Counter[str]()
    # When one follows the links of the missing, from the second page of the replied
    replied = link(browser.get(f"/scatters/{batch_id}").text, "More replied")
    address = replied
    while address:
        page = browser.get(address).text
        missing = page.split('<tr class="group">')[1]
        seen.update(re.findall(r"car \d+", missing))
        assert f"car {RECIPIENTS}<" in page.split('<tr class="group">')[3]
        address = link(page, "More missing")
    # Then each was shown once, and the replied stayed where they were
    assert set(seen.values()) == {1}
    assert len(seen) == 2 * RECIPIENTS + 3
    assert link(page, "First missing").startswith(f"/scatters/{batch_id}?replied=")


def link(page: str, text: str) -> str:
    found = re.search(rf'href="([^"]*)">{text}<', page)
    return unescape(found[1]) if found else ""


def test_a_page_makes_four_calls_and_is_small_whatever_recipients_write(service, queue, browse):
    # Given recipients with names, reasons and replies as long as they may be, of what HTML writes longest
    to = [Recipient("'" * 256, queue) for _ in range(3 * RECIPIENTS)]
    batch_id, items = scattered(service, queue, recipients=to, user_key="'" * 256)
    for item in items[:RECIPIENTS]:
        service.services.scatters.reply([Reply(item, ["'" * 40_000])])
    service.tracker.fail([Failure(item, "'" * 1_024) for item in items[RECIPIENTS : 2 * RECIPIENTS]])
    # When all of them are on one page
    calls = Calls(service)
    page = browse().get(f"/scatters/{batch_id}")
    # Then it is small, and was made by four calls
    assert len(page.content) < 100_000
    assert page.text.count("<summary>JSON of 40,004 characters") == RECIPIENTS
    assert calls == {
        "scatters.status": 1,
        "scatters.missing_recipients": 1,
        "scatters.failed_recipients": 1,
        "scatters.replies": 1,
    }


def test_at_least_four_kilobytes_of_one_reply_are_shown(service, queue, browse):
    batch_id, (item,) = scattered(service, queue, 1)
    service.services.scatters.reply([Reply(item, "x" * 9_000)])
    page = browse().get(f"/scatters/{batch_id}").text
    assert "x" * (PAYLOAD - 1) in page
    assert "x" * PAYLOAD not in page
    assert f"fanin replies {batch_id} --json" in page


def test_an_uploaded_payload_is_a_link_that_is_signed_when_it_is_followed(service, queue, browse):
    # Given a reply that was uploaded
    batch_id, items = scattered(service, queue)
    claim = service.services.scatters.claim(ClaimCheckRequest(items[1], 1_000_000))
    service.upload(claim.key)
    service.services.scatters.reply([Reply(items[1], claim=claim.key)])
    # Then the page links to it without its signed address
    Calls(service, {"scatters.replies": signed})
    browser = browse()
    page = browser.get(f"/scatters/{batch_id}").text
    assert f'<a href="/scatters/{batch_id}/payloads/1" rel="noreferrer">' in page
    assert "bucket.example" not in page
    # And the link leads there
    answer = browser.get(f"/scatters/{batch_id}/payloads/1")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"https://bucket.example/{claim.key}?X-Amz-Signature=s",
    )
    # But that of another recipient does not
    assert browser.get(f"/scatters/{batch_id}/payloads/0").status_code == 404
    assert browser.get(f"/scatters/{batch_id}/payloads/x").status_code == 404


def signed(page: Gathered) -> Gathered:
    """The replies, with their payloads in a bucket."""
    url = "https://bucket.example/{}?X-Amz-Signature=s"
    return replace(
        page, replies=tuple(replace(one, url=one.claim and url.format(one.claim)) for one in page.replies)
    )


def test_an_address_that_no_browser_should_open_is_not_followed(service, queue, browse):
    """The service in memory has no bucket, and so no address that a browser could read."""
    batch_id, items = scattered(service, queue)
    claim = service.services.scatters.claim(ClaimCheckRequest(items[0], 1))
    service.upload(claim.key)
    service.services.scatters.reply([Reply(items[0], claim=claim.key)])
    assert browse().get(f"/scatters/{batch_id}/payloads/0").status_code == 404


def test_the_live_view_shows_the_same_and_ends_with_the_scatter(service, queue, browse):
    batch_id, items = scattered(service, queue, user_key="weekly")
    browser = browse()
    page = browser.get(f"/scatters/{batch_id}").text
    address = live_of(page)
    assert "event: over" not in browser.get(address).text
    service.services.scatters.reply([Reply(item, "ok") for item in items])
    told = browser.get(address).text
    assert "3 replied" in told
    assert "event: over" in told
    assert "data-live" not in browser.get(f"/scatters/{batch_id}").text


def test_recipients_are_read_in_an_order_that_leaves_none_out(service, queue, browse):
    """One who replies meanwhile is then shown twice, not never."""
    batch_id, _ = scattered(service, queue)
    calls = Calls(service)
    browse().get(f"/scatters/{batch_id}")
    read = [name for name in calls.order if name != "scatters.status"]
    assert read == ["scatters.missing_recipients", "scatters.failed_recipients", "scatters.replies"]
