import json
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from fanin import Failure
from fanin.console import Options
from fanin.console.pages.batch import (
    DETAILS_EVERY_MS,
    FEW,
    PARTS,
    QUIET_MS,
    RANGES,
    SETTLED_MS,
    WHY_EVERY_MS,
    Reader,
)
from fanin.console.state import Console
from fanin.domain.marks import ItemRange
from tests.unit.console.calls import counted
from tests.unit.console.looking import text_of

SOON = timedelta(seconds=1)


def milliseconds(count: int) -> timedelta:
    return timedelta(milliseconds=count)


def batch_of(service, items: int, **options):
    with service.tracker.batch(**options) as batch:
        group = list(batch.add(items))
    return batch.id, group


@pytest.fixture
def reader(service):
    """Makes what reads a batch while somebody watches."""

    def make(batch_id: int) -> Reader:
        return Reader(Console(service.services, Options(sessions=False), now=service.clock.now), batch_id)

    return make


def live(browser: TestClient, batch_id: int) -> tuple[dict[str, str], bool]:
    """The first event of a live view: its fragments, and whether it is over."""
    lines = browser.get(f"/live/batches/{batch_id}").text.splitlines()
    data = next(line for line in lines if line.startswith("data: "))
    return json.loads(data.removeprefix("data: ")), "event: over" in lines


LOOK = ["ledger.status", "ledger.picture"]
"""The calls of a look at a batch that does not move."""


class TestPage:
    def test_shows_failures_by_error_and_missing_ranges(self, service, browse):
        # Given a batch with two errors and a hole
        batch_id, group = batch_of(service, 100)
        service.tracker.ack(group[:40])
        service.tracker.fail([Failure(item, f"row {at} is bad") for at, item in enumerate(group[40:43])])
        service.tracker.fail([Failure(group[43], "no such customer")])
        # Then the page names both, the more frequent first, and the range that is missing
        page = browse().get(f"/batches/{batch_id}").text
        shown = text_of(page)
        assert "row &lt;n&gt; is bad 3 no such customer 1" in shown
        assert "44 \u2013 99 56 items" in shown
        assert f'href="/batches/{batch_id}/failures"' in page
        assert f'href="/batches/{batch_id}/missing"' in page

    def test_says_that_nothing_is_wrong(self, service, browse):
        batch_id, group = batch_of(service, 3)
        service.tracker.ack(group)
        shown = text_of(browse().get(f"/batches/{batch_id}").text)
        assert "Nothing has failed." in shown
        assert "Nothing is missing." in shown

    def test_says_that_there_is_too_much_to_list(self, service, browse):
        batch_id, _ = batch_of(service, FEW + 1)
        shown = text_of(browse().get(f"/batches/{batch_id}").text)
        assert f"{FEW + 1:,} items are not done: too many to list here. List them" in shown

    def test_draws_progress_once_there_are_two_figures(self, service, browse):
        batch_id, group = batch_of(service, 100)
        browser = browse()
        assert "This console has watched it since 2026-11-23 09:00:00 UTC" in text_of(
            browser.get(f"/batches/{batch_id}").text
        )
        service.advance(SOON)
        service.tracker.ack(group[:10])
        page = browser.get(f"/batches/{batch_id}").text
        assert '<polyline points="0.0,100.0 600.0,0.0"/>' in page
        assert "From 0 to 10 within 1 s." in page
        assert "09:00:01 10 0 100" in text_of(page)  # of the table

    def test_counts_what_is_held_at_the_first_look(self, service, browse):
        # Given more held items than a status of bounds counts
        batch_id, group = batch_of(service, 200, on_failure="hold")
        service.tracker.fail([Failure(item, "x") for item in group[::8]])
        # Then the page does not say one number above and another below
        shown = text_of(browse().get(f"/batches/{batch_id}").text)
        assert "Held 25" in shown
        figures, why, _ = shown.partition("Failed items are held")
        assert why
        assert "at least" not in figures


class TestCalls:
    def test_a_page_of_a_quiet_batch_makes_two_calls_and_of_one_in_trouble_six(self, service, browse):
        # Given a finished batch, and one with failures
        well, group = batch_of(service, 3)
        service.tracker.ack(group)
        bad, group = batch_of(service, 5_000)
        service.tracker.fail([Failure(group[0], "x")])
        calls = counted(service)
        browser = browse()
        browser.get(f"/batches/{well}")
        assert calls == LOOK
        calls.clear()
        browser.get(f"/batches/{bad}")
        assert sorted(calls) == [
            "diagnostics.why",
            "ledger.errors",
            "ledger.missing",
            "ledger.picture",
            "ledger.status",
            "ledger.status",
        ]

    def test_watching_a_batch_that_does_not_move_costs_two_calls_a_look(self, service, reader):
        batch_id, group = batch_of(service, 100)
        service.tracker.fail([Failure(group[0], "x")])
        calls = counted(service)
        watched = reader(batch_id)
        watched.read()
        calls.clear()
        for _ in range(20):
            service.advance(SOON)
            watched.read()
        assert calls == LOOK * 20

    def test_watching_a_batch_that_moves_reads_the_rest_every_ten_seconds(self, service, reader):
        # Given a batch with a failure, whose items come in one a second
        batch_id, group = batch_of(service, 1_000)
        service.tracker.fail([Failure(group[-1], "x")])
        calls = counted(service)
        watched = reader(batch_id)
        watched.read()
        calls.clear()
        for item in group[:60]:
            service.advance(SOON)
            service.tracker.ack(item)
            watched.read()
        # Then what takes more reads was read six times, and the diagnosis was not repeated
        assert calls.count("ledger.status") == 60
        assert calls.count("ledger.errors") == calls.count("ledger.missing") == 60_000 // DETAILS_EVERY_MS
        assert "diagnostics.why" not in calls

    def test_the_last_change_is_shown_although_the_batch_has_stopped_since(self, service, reader):
        # Given a change within the ten seconds
        batch_id, group = batch_of(service, 100)
        watched = reader(batch_id)
        watched.read()
        service.advance(SOON)
        service.tracker.ack(group[:50])
        assert watched.read().details.missing.ranges[0].start == 0
        service.advance(milliseconds(DETAILS_EVERY_MS))
        assert watched.read().details.missing.ranges[0].start == 50

    def test_a_batch_without_progress_is_diagnosed_and_not_again_for_five_minutes(self, service, reader):
        batch_id, _ = batch_of(service, 100)
        calls = counted(service)
        watched = reader(batch_id)
        assert watched.read().diagnosis is None
        service.advance(milliseconds(QUIET_MS))
        assert watched.read().diagnosis is not None
        service.advance(milliseconds(WHY_EVERY_MS - 1))
        watched.read()
        assert calls.count("diagnostics.why") == 1
        service.advance(milliseconds(1))
        watched.read()
        assert calls.count("diagnostics.why") == 2

    def test_a_batch_that_is_said_to_be_stalled_is_diagnosed_at_once(self, service, reader):
        # Given a batch that stalls sooner than others are diagnosed
        assert milliseconds(QUIET_MS) > timedelta(seconds=100)
        batch_id, _ = batch_of(service, 100, stall_after=timedelta(seconds=60))
        service.advance(timedelta(seconds=100))
        # Then the page that says so says why, too
        shown = reader(batch_id).read()
        assert shown.heading.stalled_at is not None
        assert shown.diagnosis is not None

    def test_a_batch_that_makes_progress_again_is_not_said_to_be_in_trouble(self, service, reader):
        batch_id, group = batch_of(service, 100)
        watched = reader(batch_id)
        watched.read()
        service.advance(milliseconds(QUIET_MS))
        watched.read()
        service.tracker.ack(group[:50])
        service.advance(SOON)
        assert watched.read().diagnosis is None

    def test_loading_the_page_again_shows_what_is_true_now(self, service, browse):
        batch_id, group = batch_of(service, 100)
        browser = browse()
        browser.get(f"/batches/{batch_id}")
        service.tracker.ack(group[:50])
        assert "50 \u2013 99" in text_of(browser.get(f"/batches/{batch_id}").text)

    def test_few_ranges_are_asked_for(self, service, reader):
        batch_id, group = batch_of(service, 100)
        service.tracker.ack(group[::2])
        found = reader(batch_id).read().details.missing
        assert len(found.ranges) == RANGES
        assert found.cursor is not None

    def test_a_billion_items_take_less_than_a_second(self, service, reader):
        with service.tracker.batch() as batch:
            group = batch.add(10**9)
        service.services.ledger.mark([ItemRange(group.prefix, 0, 10**8)]).whole()
        calls = counted(service)
        reader(batch.id).read()
        assert calls == LOOK


class TestLive:
    def test_an_event_has_all_parts_of_the_page(self, service, browse):
        fragments, over = live(browse(), batch_of(service, 100)[0])
        pictured = {f"picture-{name}" for name in ("path", "drawn", "figures", "table")}
        assert set(fragments) == {"heading", "buttons", "tabs", "facts", *pictured, *PARTS}
        assert not over

    def test_time_alone_is_not_a_fact(self, service, reader):
        batch_id, group = batch_of(service, 100)
        watched = reader(batch_id)
        first = watched.read()
        service.advance(SOON)
        assert watched.read().facts == first.facts
        service.tracker.ack(group[0])
        assert watched.read().facts != first.facts

    def test_facts_can_be_compared_and_hashed(self, service, reader):
        batch_id, group = batch_of(service, 100, on_failure="hold")
        service.tracker.fail([Failure(group[0], "x")])
        hash(reader(batch_id).read().facts)

    def test_it_is_over_once_the_batch_has_ended_with_exact_figures(self, service, browse):
        batch_id, group = batch_of(service, 3)
        service.tracker.ack(group)
        browser = browse()
        assert live(browser, batch_id)[1]
        assert "data-live" not in browser.get(f"/batches/{batch_id}").text

    def test_bounds_of_an_ended_batch_are_over_after_a_minute(self, service, reader):
        # Given a large batch that was cancelled with a hole in it
        with service.tracker.batch() as batch:
            group = batch.add(10**7)
        service.services.ledger.mark([ItemRange(group.prefix, 1, 10**7)]).whole()
        service.tracker.cancel(batch.id)
        watched = reader(batch.id)
        shown = watched.read()
        assert not shown.heading.exact
        assert not shown.over
        service.advance(milliseconds(SETTLED_MS + 1))
        assert watched.read().over

    def test_its_end_shows_what_is_missing_at_once(self, service, reader):
        batch_id, group = batch_of(service, 100)
        watched = reader(batch_id)
        watched.read()
        service.tracker.ack(group[:50])
        service.tracker.cancel(batch_id)
        service.advance(SOON)
        assert watched.read().details.missing.ranges[0].start == 50

    def test_an_unknown_batch_is_told_as_trouble(self, browse):
        assert "event: trouble" in browse().get("/live/batches/17").text
