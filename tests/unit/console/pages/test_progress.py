from __future__ import annotations

import pytest

from fanin import Count
from fanin.console.pages.progress import Row, rows_of
from fanin.console.state import Console
from fanin.domain.reports import Progress
from fanin.errors import AccessDenied, BatchGone, Throttled
from tests.unit.console.calls import Calls


@pytest.fixture
def console(browse) -> Console:
    found: Console = browse().app.state.console
    return found


def test_a_live_batch_is_asked_how_far_it_is_and_its_rate_comes_with_time(service, console) -> None:
    # Given a batch of which 10 items a second are done
    with service.tracker.batch() as opened:
        group = list(opened.add(100))
    service.tracker.ack(group[:20])
    (row,) = rows_of(console, [service.tracker.status(opened.id).batch])
    assert (row.done, row.exact, row.rate, row.left) == (20, True, None, None)
    # When it is looked at again three seconds later
    service.clock.sleep(3)
    service.tracker.ack(group[20:50])
    (row,) = rows_of(console, [service.tracker.status(opened.id).batch])
    # Then its rate and the time left are known
    assert (row.done, row.rate, row.left) == (50, 10, 5)


def test_an_ended_batch_is_not_asked(service, console) -> None:
    with service.tracker.batch() as opened:
        group = opened.add(3)
    service.tracker.ack(group)
    batch = service.tracker.status(opened.id).batch
    calls: list[str] = []
    service.on_call = lambda access, when: calls.append(access)
    assert rows_of(console, [batch]) == [Row(batch, 3)]
    assert not calls


def test_of_a_cancelled_batch_nobody_has_counted_what_is_done(service, console) -> None:
    group = service.tracker.add(service.tracker.open().batch_id, 3)
    service.tracker.ack(group[:1])
    batch = service.tracker.cancel(group.batch_id)
    assert rows_of(console, [batch])[0].done is None


def test_an_estimated_batch_says_what_it_has_counted(service, console) -> None:
    batch = service.tracker.open(mode="estimated")
    service.tracker.add(batch.batch_id, 10)
    service.services.ledger.mark([Count(batch.batch_id, 4)]).whole()
    (row,) = rows_of(console, [service.tracker.cancel(batch.batch_id)])
    assert (row.done, row.exact) == (4, False)


def test_a_batch_that_was_removed_meanwhile_does_not_spoil_the_list(service, console) -> None:
    batch = service.tracker.open()
    service.tracker.add(batch.batch_id, 3)
    batch = service.tracker.status(batch.batch_id).batch

    def gone(access: str, when: str) -> None:
        if access.startswith("batches.") and when == "before":
            raise BatchGone("removed")

    service.on_call = gone
    assert rows_of(console, [batch]) == [Row(batch, None)]


@pytest.mark.parametrize("why", [AccessDenied("not this one"), ValueError("damaged")])
def test_a_batch_that_cannot_be_read_hides_no_other(service, browse, why) -> None:
    # Given two batches, of which one cannot be asked how far it is
    bad = service.tracker.open(user_key="bad")
    for batch in (bad, service.tracker.open(user_key="good")):
        service.tracker.add(batch.batch_id, 8)

    def answer(progress: Progress) -> Progress:
        if progress.batch.batch_id == bad.batch_id:
            raise why
        return progress

    Calls(service, {"ledger.status": answer})
    # Then the overview and the list show both, and that one as not counted
    for page in ("/", "/batches"):
        said = browse().get(page).text
        assert "0 of 8" in said
        assert said.count("counted on its page") == 1


def test_an_overloaded_service_is_not_shown_as_batches_that_cannot_be_read(service, browse) -> None:
    service.tracker.add(service.tracker.open().batch_id, 8)

    def busy(_: Progress) -> Progress:
        raise Throttled("busy")

    Calls(service, {"ledger.status": busy})
    assert browse().get("/batches").status_code == 503
