"""What all pages of one console share, and what they read in an address."""

from itertools import pairwise

import pytest
from starlette.requests import Request

from fanin.console.samples import BATCHES, POINTS, Sample, Samples
from fanin.console.state import ENTRIES, cursor_in, id_in, natural
from fanin.errors import BatchNotFound, InvalidRequest


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
