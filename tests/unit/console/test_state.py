"""What all pages of one console share: what they read in an address, and how they keep up to date."""

import json
from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Any

import pytest
from starlette.requests import Request

from fanin.console.samples import BATCHES, POINTS, Sample, Samples
from fanin.console.state import ENTRIES, LivePage, cursor_in, events, id_in, natural
from fanin.errors import BatchNotFound, InvalidRequest, Throttled


def test_a_browser_without_a_session_gets_one_where_none_is_needed(browse):
    # Given a console whose callers somebody else has checked
    browser = browse(cookie="__Host-fanin")
    # When a browser comes, and comes again
    first, second = browser.get("/"), browser.get("/")
    # Then it got a cookie once, so that its forms can be told from those of others
    assert "__Host-fanin=" in first.headers["set-cookie"]
    assert "set-cookie" not in second.headers


def test_what_is_remembered_is_made_once_and_forgotten_if_it_was_not_used_for_longest(browse):
    console = browse().app.state.console
    first = console.remembered("a", list)
    for other in range(ENTRIES - 1):
        console.remembered(other, list)
    assert console.remembered("a", list) is first
    last = console.remembered(0, list)
    console.remembered("one more", list)
    assert console.remembered("a", list) is first
    assert console.remembered(0, list) is last


def asked(text: str) -> Request:
    return Request({"type": "http", "headers": [], "path_params": {"batch_id": text}})


def test_an_id_is_a_number():
    assert id_in(asked("9007199254740991")) == 2**53 - 1


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "٣", "²", " 1", "9" * 17, "9" * 5000])
def test_nothing_else_is_an_id(text):
    with pytest.raises(BatchNotFound, match="not an id"):
        id_in(asked(text))


def test_a_whole_number_may_be_left_out():
    assert natural("level", "3") == 3
    assert natural("level", "") is natural("level", None) is None


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "٣", "²", " 1", "9" * 17])
def test_nothing_else_is_a_whole_number(text):
    with pytest.raises(InvalidRequest, match="level is a whole number"):
        natural("level", text)


@pytest.mark.parametrize(("query", "cursor"), [(b"", None), (b"cursor=", None), (b"cursor=a%20b", "a b")])
def test_a_listing_begins_at_its_cursor(query, cursor):
    assert cursor_in(Request({"type": "http", "headers": [], "query_string": query})) == cursor


def at(second: int, done: int) -> Sample:
    return Sample(second * 1000, done, 0, 1_000_000)


def test_samples_are_kept_in_order_and_repeats_move_the_last():
    # Given a batch that stands still for a while
    samples = Samples()
    for second, done in ((0, 0), (1, 5), (2, 5), (3, 5), (4, 5), (5, 9)):
        samples.record(1, at(second, done))
    # Then only the ends of that time are kept
    assert [(sample.at // 1000, sample.done) for sample in samples.of(1)] == [(0, 0), (1, 5), (4, 5), (5, 9)]


def test_what_is_done_stays_done_although_some_samples_are_bounds():
    samples = Samples()
    for second, done in ((0, 700), (1, 640), (2, 900)):
        samples.record(1, at(second, done))
    assert [sample.done for sample in samples.of(1)] == [700, 700, 900]


def test_a_clock_that_goes_back_adds_nothing():
    samples = Samples()
    for second in (5, 3, 5):
        samples.record(1, at(second, second))
    assert len(samples.of(1)) == 1


def test_a_day_of_samples_stays_bounded_and_spans_the_day():
    samples = Samples()
    for second in range(86_400):
        samples.record(1, at(second, second))
    kept = samples.of(1)
    assert len(kept) <= POINTS
    assert (kept[0].at, kept[-1].at) == (0, 86_399_000)
    gaps = [after.at - before.at for before, after in pairwise(kept)]
    assert max(gaps) <= 5 * 86_400_000 / POINTS


def test_only_some_batches_have_samples():
    samples = Samples()
    for batch_id in range(BATCHES + 1):
        samples.record(batch_id, at(0, 0))
    assert samples.of(0) == ()
    assert samples.of(BATCHES)


def test_the_rate_is_that_of_the_last_minute():
    samples = Samples()
    assert samples.rate(1) is None
    samples.record(1, at(0, 0))
    assert samples.rate(1) is None
    samples.record(1, at(100, 1000))
    assert samples.rate(1) == 10  # nothing else was sampled
    samples.record(1, at(130, 1600))
    assert samples.rate(1) == 20


def view(html: str, facts: Hashable, *, over: bool = False) -> LivePage:
    return LivePage("", {"a": (html, "")}, facts, over)


def asked_again(read: Callable[[], LivePage], last: str = "", soonest: float = 1.0) -> tuple[int, str, str]:
    """After how many ms a browser asks again, the id that it keeps, and the rest of the answer."""
    answer = events(read, lambda html, _: html, last=last, soonest=soonest)
    assert answer.media_type == "text/event-stream"
    about, _, rest = bytes(answer.body).decode().partition("\n\n")
    retry, kept = about.split("\n")
    return int(retry.removeprefix("retry: ")), kept.removeprefix("id: "), rest


def told(read: Callable[[], LivePage]) -> list[tuple[str, Any]]:
    """The events of an answer: name and data."""
    blocks = [block.split("\n") for block in asked_again(read)[2].split("\n\n") if block]
    return [
        (lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))) for lines in blocks
    ]


def over() -> LivePage:
    return view("<b>\n\u2028</b>", 1, over=True)


def busy() -> LivePage:
    raise Throttled("busy")


def test_an_answer_has_one_view_or_trouble_and_says_if_it_was_the_last():
    assert told(lambda: view("1", 1)) == [("view", {"a": "1"})]
    assert told(over) == [("view", {"a": "<b>\n\u2028</b>"}), ("over", {})]
    # An answer that is not 200 would make the browser give up.
    assert told(busy) == [("trouble", {"text": "busy", "seconds": 1.0})]


@pytest.mark.parametrize(
    ("soonest", "waits"),
    [(5, [5_000, 7_500, 11_250, 16_875, 25_312, 30_000, 30_000]), (1, [1_000, 1_500, 2_250, 3_375])],
)
def test_a_browser_asks_later_and_later_while_nothing_changes(soonest, waits):
    # Given a browser that asks for a view again and again, whichever process answers
    found, last = [], ""
    for _ in waits:
        wait, last, told_now = asked_again(lambda: view("1 s ago", (1, "é\ud800")), last, soonest)
        found.append(wait)
        assert "event: view" in told_now
    assert found == waits
    # When something changes, Then it asks soon again
    wait, last, _ = asked_again(lambda: view("1 s ago", (2, "é")), last, soonest)
    assert wait == soonest * 1000


def test_a_browser_asks_later_and_later_while_the_service_is_overloaded():
    last = ""
    for _ in range(12):
        wait, last, rest = asked_again(busy, last)
    assert (wait, '"seconds": 60.0' in rest) == (60_000, True)


def test_a_service_that_says_how_long_to_wait_is_not_asked_before():
    def rests() -> LivePage:
        raise Throttled("busy", retry_after=7)

    assert asked_again(rests)[0] == 7_000


@pytest.mark.parametrize("last", ["x", "0.0", "0" * 16 + ".1000", "0123456789abcdef.-1", "\xb2" * 16 + ".1"])
def test_an_id_that_is_not_its_own_is_ignored(last):
    assert asked_again(over, last)[0] == 1_000


def test_a_text_that_utf8_cannot_carry_is_told():
    ((_, shown),) = told(lambda: view("x\udc00", 1))
    assert shown == {"a": "x\udc00"}
