from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from fanin import Failure, KeptMessage
from fanin.console.pages.overview import COUNTED, SHOWN, overview, trouble
from fanin.console.state import Console


@pytest.fixture
def shown(browse):
    """Reads what the page shows."""
    console: Console = browse().app.state.console
    return lambda: overview(console)


def test_states_are_counted_up_to_a_bound(service, browse, shown) -> None:
    # Given more open batches than are counted, and one that is complete
    for _ in range(COUNTED + 3):
        service.tracker.open()
    with service.tracker.batch() as batch:
        group = batch.add(2)
    service.tracker.ack(group)
    # Then the page says that there are more
    counts = {str(state): count for state, count in shown().counts.items()}
    assert counts["open"] == (COUNTED, True)
    assert counts["complete"] == (1, False)
    assert f"{COUNTED}+" in browse().get("/").text


def test_what_is_wrong_comes_first_and_says_why(service, shown, browse) -> None:
    # Given a batch that fails, one that stalls, one that was cancelled, and one that is well
    tracker = service.tracker
    stalled = tracker.add(tracker.open(user_key="stalled", stall_after=timedelta(minutes=1)).batch_id, 5)
    service.advance(timedelta(minutes=10))
    failing = tracker.add(tracker.open(user_key="failing").batch_id, 5)
    tracker.fail([Failure(failing[0], "no price")])
    cancelled = tracker.open(user_key="cancelled")
    tracker.cancel(cancelled.batch_id)
    tracker.add(tracker.open(user_key="well").batch_id, 5)
    # When the page is read
    found = shown()
    # Then it says what is wrong with each
    why = {one.row.batch.user_key: one.why for one in found.attention}
    assert why["stalled"] == ("stalled",)
    assert why["failing"] == ("1 failed",)
    assert why["cancelled"] == ("cancelled",)
    assert [row.batch.user_key for row in found.running] == ["well"]
    page = browse().get("/").text
    assert page.index("Needs attention") < page.index("Running")
    assert str(stalled.batch_id) in page


def test_what_ended_long_ago_needs_no_attention(service, shown) -> None:
    batch = service.tracker.open()
    service.tracker.cancel(batch.batch_id)
    assert shown().attention
    service.advance(timedelta(hours=25))
    assert not shown().attention


def test_failures_that_were_all_sent_again_need_no_attention(service, shown) -> None:
    # Given a complete batch of which two failed, with their messages
    queue = service.queue()
    with service.tracker.batch(user_key="shop") as batch:
        batch.send(queue, ["a", "b", "c"])
    group = service.tracker.missing(batch.id).ranges[0].group
    found = [f"{group}:{number}" for number in range(3)]
    service.tracker.ack(found[:1])
    service.tracker.fail([Failure(item, "x", KeptMessage("b"), source=queue) for item in found[1:]])
    assert [one.why for one in shown().attention] == [("2 failed",)]
    # When they are redriven, they are the business of the new batch
    service.tracker.redrive(batch.id)
    assert [one.row.batch.batch_id for one in shown().attention] == []


def test_a_batch_that_its_producer_forgot_to_close_is_trouble(service, shown) -> None:
    group = service.tracker.add(service.tracker.open(user_key="prices").batch_id, 3)
    service.tracker.ack(group)
    assert not shown().attention
    service.advance(timedelta(minutes=20))
    assert [one.why for one in shown().attention] == [("all done, but not closed",)]


def test_a_deadline_that_passed_is_trouble(service) -> None:
    batch = service.tracker.open(deadline=timedelta(minutes=5))
    assert trouble(batch, service.clock.now()) == ()
    assert trouble(batch, service.clock.now() + 600_000) == ("past its deadline",)


def test_the_page_makes_a_bounded_number_of_calls(service, browse) -> None:
    # Given many batches and buffers
    for number in range(3 * SHOWN):
        group = service.tracker.add(service.tracker.open().batch_id, 100)
        if number % 2:
            service.tracker.fail([Failure(group[0], "x")])
        service.tracker.buffers.define(f"buffer-{number}", 5)
    calls: Counter[str] = Counter()
    service.on_call = lambda access, when: calls.update([access] if when == "before" else [])
    # When the page is read
    page = browse().get("/")
    # Then it lists six states, asks for as many batches as it shows, and stays small
    assert calls["batches.page"] == 6
    assert calls["words.read_tallied"] <= 2 * 2 * SHOWN
    assert len(page.content) < 100_000


def test_an_empty_stack_says_what_makes_a_batch(service, browse) -> None:
    page = browse().get("/").text
    assert "There are no batches yet: <code>fanin open</code>" in page
    service.tracker.open()
    assert "no batches yet" not in browse().get("/").text
