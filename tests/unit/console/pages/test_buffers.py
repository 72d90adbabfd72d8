"""Buffers: their gauges, their list, and the page of one."""

import re

import pytest

from fanin.console.options import Options
from fanin.console.pages.patterns import BUFFERS
from fanin.console.rendering import Templates
from fanin.domain.buffer import Buffer, BufferPage, FailedWork, Level
from tests.unit.console.calls import Calls
from tests.unit.console.looking import HOSTILE, pages_from, words


def dashes(taken: int, waiting: int, limit: int) -> dict[str, tuple[float, float]]:
    """Class of each part of a gauge's arc → where it starts, and how long it is, of 100."""
    level = level_of(taken + waiting, taken=taken, count=0, limit=limit)
    svg = Templates(Options(), lambda: 0).macro("buffers_parts.html", "gauge", level)
    found = re.findall(
        r'class="(\w+)" d="[^"]*" pathLength="100" stroke-dasharray="0 ([\d.]+) ([\d.]+) ', svg
    )
    return {name: (float(start), float(length)) for name, start, length in found}


def test_parts_of_a_gauge_follow_each_other_from_the_left():
    drawn = dashes(10, 25, 100)
    assert (drawn["rest"], drawn["taken"], drawn["waiting"]) == ((0, 100), (0, 10), (10, 25))
    assert drawn["limit"][1] == 0


def test_above_the_limit_a_tick_shows_where_the_limit_is():
    # Given 50 where 20 are allowed
    drawn = dashes(10, 40, 20)
    # Then the arc is full with what there is
    assert (drawn["taken"], drawn["waiting"]) == ((0, 20), (20, 80))
    # And the tick is at two fifths of it
    start, length = drawn["limit"]
    assert length > 0
    assert start + length / 2 == pytest.approx(40)


def test_a_gauge_has_all_its_parts_whatever_is_in_it():
    """A live view then changes attributes only."""
    empty, little = dashes(0, 0, 0), dashes(0, 10, 1_000_000)
    assert empty.keys() == little.keys() == dashes(9, 0, 5).keys() == {"rest", "taken", "waiting", "limit"}
    assert (empty["taken"], empty["waiting"], little["waiting"]) == ((0, 0), (0, 0), (0, 0))


def filled(service, name: str = "renders", limit: int = 10, put: int = 0, taken: int = 0) -> list[str]:
    """Define a buffer with work, of which some is taken; the receipts of that."""
    buffers = service.services.buffers
    buffers.define(name, limit)
    for number in range(put):
        buffers.put(name, [f"scene {number}"])
    return [work.receipt for _ in range(taken) for work in buffers.take(name, wait=0)]


def test_each_buffer_shows_how_full_it_is(service, browse):
    # Given a buffer with five payloads, of which two are taken, and one that is empty
    filled(service, "renders", 20, put=5, taken=2)
    filled(service, "idle", 50)
    # Then both say so, in words as well
    page = browse().get("/buffers").text
    said = words(page)
    assert "renders 5 of 20 25.0 % 2 taken 3 waiting 15 free Work waits for consumers" in said
    assert "idle 0 of 50 0 % 0 taken 0 waiting 50 free Nobody waits for work" in said
    assert 'aria-label="5 of 20 slots in use, 2 of them taken"' in page
    assert 'href="/buffers/renders"' in page


def test_consumers_that_wait_are_counted(browse, service):
    filled(service)
    Calls(service, {"buffers.status": lambda level: level_of(3, taken=0, count=-2)})
    assert "2 consumers waiting for work" in words(browse().get("/buffers/renders").text)


def level_of(pending: int, *, taken: int, count: int, limit: int = 10, draining: bool = False) -> Level:
    return Level(Buffer("renders", limit, "q", owned=True, batch_id=1), count, pending, taken, draining)


def test_a_full_buffer_says_what_that_means(service, browse):
    filled(service, limit=4, put=4)
    assert "full" in words(browse().get("/buffers").text)
    assert "Full: puts are refused until work is done." in words(browse().get("/buffers/renders").text)


def test_above_a_limit_that_was_lowered_the_buffer_drains(service, browse):
    # Given a buffer whose limit is now less than what is in it
    filled(service, limit=10, put=8, taken=1)
    service.services.buffers.define("renders", 2)
    # Then its page says why nothing can be put in, and for how long
    page = browse().get("/buffers/renders").text
    said = words(page)
    assert "Draining: puts are refused until the work in it is done" in said
    assert "8 to go." in said
    assert "8 of 2 over the limit, which was lowered" in said
    assert "400.0 %" in said
    assert "0 free" in said


def test_a_buffer_shows_its_batch_its_queue_and_its_failures(service, browse):
    # Given a buffer of which one payload was given up
    (receipt,) = filled(service, put=3, taken=1)
    service.services.buffers.done("renders", [], failures=[FailedWork(receipt, "no such scene")])
    buffer = service.services.buffers.status("renders").buffer
    # Then all of that is there, or a link away
    page = browse().get("/buffers/renders").text
    assert f'href="/batches/{buffer.batch_id}"' in page
    assert f'<a href="/batches/{buffer.batch_id}/failures"><span class="count bad">1' in page.replace(
        "\n", ""
    )
    assert buffer.queue in page
    assert "made for this buffer" in page
    # And nothing is claimed about what nobody counts
    assert "<code>BufferRejects</code>" in page


def test_a_buffer_whose_batch_is_gone_is_shown(service, browse):
    filled(service)
    batch_id = service.services.buffers.status("renders").buffer.batch_id
    service.tracker.cancel(batch_id)
    service.tracker.remove(batch_id)
    page = browse().get("/buffers/renders")
    assert page.status_code == 200
    assert "its batch is gone" in page.text


def test_every_buffer_is_on_one_page_when_paging_through(service, browse):
    # Given more buffers than two pages have
    names = [f"b{number:02}" for number in range(2 * BUFFERS + 3)]
    for name in names:
        filled(service, name)
    pages = pages_from(browse(), "/buffers")
    seen = [name for page in pages for name in re.findall(r'class="name" href="/buffers/([^"]*)"', page)]
    assert seen == names


def test_a_page_lists_once_and_asks_each_buffer_once(service, browse):
    for number in range(BUFFERS + 5):
        filled(service, f"b{number:02}")
    calls = Calls(service)
    browse().get("/buffers")
    assert calls == {"buffers.list": 1, "buffers.status": BUFFERS}


def test_buffers_that_cannot_be_read_are_named_and_hide_no_other(service, browse):
    filled(service)

    def spoiled(page: BufferPage) -> BufferPage:
        return BufferPage(page.buffers, None, (HOSTILE, "other"))

    Calls(service, {"buffers.list": spoiled})
    page = browse().get("/buffers").text
    assert "renders" in words(page)
    assert "cannot be read" in page
    assert 'href="/buffers/other"' in page
    assert "<script>alert" not in page


def test_a_buffer_that_is_deleted_meanwhile_is_left_out(service, browse):
    filled(service, "a")
    filled(service, "b")

    def late(page: BufferPage) -> BufferPage:
        service.tracker.buffers.delete("a")
        return page

    Calls(service, {"buffers.list": late})
    page = browse().get("/buffers")
    assert re.findall(r'class="name" href="/buffers/([^"]*)"', page.text) == ["b"]


def test_buffers_that_cannot_be_read_hide_no_other(service, browse):
    # Given three buffers: one is damaged, and one is on a queue of somebody, who deletes it
    filled(service, "good", put=3)
    filled(service, "bad")
    queue = service.queue(channel=True)
    service.services.buffers.define("lost", 10, queue=queue)
    service._runtime.sqs.delete_queue(QueueUrl=queue)

    def answer(level: Level) -> Level:
        if level.buffer.name == "bad":
            raise ValueError("damaged")
        return level

    Calls(service, {"buffers.status": answer})
    # Then the list and the overview, and their live views, show the other, and name these
    for page in ("/buffers", "/"):
        shown = browse().get(page).text
        assert "good 3 of 10" in words(shown)
        assert '<a href="/buffers/bad">bad</a>, <a href="/buffers/lost">lost</a> cannot be read.' in shown
    for live in ("/live/buffers", "/live/overview"):
        assert "3 of 10" in words(browse().get(live).text)
