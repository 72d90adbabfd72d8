"""Frames: their list, and one of them with its missing envelopes."""

import re
from datetime import timedelta

from fanin import Failure, OpenFrame
from fanin.console.pages.patterns import FRAMES, RANGES
from fanin.domain.frames import Ticket
from tests.unit.console.calls import Calls
from tests.unit.console.looking import live_of, pages_from, words


def opened(service, size: int, **more) -> int:
    return service.services.frames.open(OpenFrame(size, **more)).frame_id


def handle(service, frame_id: int, *indices: int) -> None:
    claims = service.services.frames.claim([Ticket(frame_id, index) for index in indices])
    service.tracker.ack([claim.item for claim in claims])


def test_the_list_has_frames_only(service, browse):
    # Given a batch, and a frame of which one envelope was handled
    service.tracker.open(user_key="of another kind")
    frame_id = opened(service, 4, source="shop", destination="billing", user_key="orders")
    handle(service, frame_id, 2)
    # Then the list shows the frame, from whom to whom, and how far it is
    page = browse().get("/frames").text
    assert "of another kind" not in page
    said = words(page)
    assert "shop billing" in said
    assert "1 of 4" in said
    assert f'href="/frames/{frame_id}"' in page


def test_a_full_list_is_small_whatever_senders_write(service, browse):
    for _ in range(FRAMES.sizes[-1]):
        opened(service, 70, source="'" * 256, destination="'" * 256, user_key="'" * 256)
        service.clock.sleep(0.002)  # ids of one millisecond are few
    page = browse().get(f"/frames?size={FRAMES.sizes[-1]}")
    assert page.text.count("0 of 70 done") == FRAMES.sizes[-1]
    assert len(page.content) < 100_000
    assert browse().get("/frames?size=75").status_code == 400


def test_a_frame_shows_what_is_missing(service, browse):
    # Given a frame of which the second, fourth and fifth of six envelopes were handled
    queue = service.queue("replies", channel=True)
    frame_id = opened(
        service, 6, source="shop", destination="billing", reply_to=queue, ttl=600, totals=["cents"]
    )
    handle(service, frame_id, 1, 3, 4)
    # Then its page names the others as ranges, with both ends
    page = browse().get(f"/frames/{frame_id}").text
    rows = re.findall(r"<tr>(.*?)</tr>", page.partition('id="missing"')[2])
    assert [words(row).split() for row in rows[1:]] == [["0", "0", "1"], ["2", "2", "1"], ["5", "5", "1"]]
    # And everything else that is known
    said = words(page)
    for known in ("3 of 6", "shop", "billing", queue, "10 min", "cents", "closed delivering"):
        assert known in said


def test_failed_envelopes_are_linked(service, browse):
    frame_id = opened(service, 3)
    (claim,) = service.services.frames.claim([Ticket(frame_id, 0)])
    service.tracker.fail([Failure(claim.item, "no such customer")])
    assert f'<a href="/batches/{frame_id}/failures"><span class="count bad">' in browse().get(
        f"/frames/{frame_id}"
    ).text.replace("\n", "")


def test_every_missing_range_is_on_one_page_when_paging_through(service, browse):
    # Given a frame with more ranges than two pages have
    frame_id = opened(service, 5 * RANGES)
    handle(service, frame_id, *range(1, 5 * RANGES, 2))
    *_, last = pages = list(pages_from(browse(), f"/frames/{frame_id}"))
    seen = [start for page in pages for start in re.findall(r'<tr><td class="figure">(\d+)<', page)]
    # Then each was shown once, and the last page leads back to the first
    assert [int(start) for start in seen] == list(range(0, 5 * RANGES, 2))
    assert f'href="/frames/{frame_id}">First page' in last


def test_a_complete_frame_says_so(service, browse):
    frame_id = opened(service, 2)
    service.clock.sleep(90)
    handle(service, frame_id, 0, 1)
    said = words(browse().get(f"/frames/{frame_id}").text)
    assert "every envelope was handled" in said
    assert "after 1 min 30 s" in said


def test_a_frame_that_was_given_up_still_says_what_is_missing(service, browse):
    frame_id = opened(service, 3, ttl=60)
    handle(service, frame_id, 1)
    service.advance(timedelta(hours=1))
    said = words(browse().get(f"/frames/{frame_id}").text)
    assert "timed out" in said
    assert "From no. To no. Envelopes 0 0 1 2 2 1" in said


def test_what_is_missing_of_a_large_frame_is_listed_once(service, browse):
    """A page of it may read 500 rows, so the live view shows its progress alone."""
    # Given a frame of a billion envelopes
    frame_id = opened(service, 1_000_000_000)
    browser = browse()
    # Then its page lists what is missing, from the beginning on
    page = browser.get(f"/frames/{frame_id}").text
    said = words(page)
    assert "0 of 1,000,000,000" in said
    assert "From no. To no. Envelopes 0 25,535 25,536" in said
    assert "As it was when the page was loaded" in said
    # And its live view does not read that again
    address = live_of(page)
    calls = Calls(service)
    told = browse().get(address).text
    assert "0 of 1,000,000,000" in told
    assert "Envelopes" not in told
    assert calls == {"ledger.status": 1}


def test_the_live_view_shows_the_same_and_ends_with_the_frame(service, browse):
    frame_id = opened(service, 2)
    browser = browse()
    page = browser.get(f"/frames/{frame_id}").text
    address = live_of(page)
    told = browser.get(address).text
    assert "0 of 2" in told
    assert "event: over" not in told
    handle(service, frame_id, 0, 1)
    told = browser.get(address).text
    assert "2 of 2" in told
    assert "event: over" in told
    assert "data-live" not in browser.get(f"/frames/{frame_id}").text
