"""Redriving: each failure once, under one new item, whatever dies and whoever presses again."""

from collections import Counter
from contextlib import suppress

import pytest

from fanin.app.ports.parts import IN_ROW, REDRIVE
from fanin.app.redrives.delivery import LISTED
from fanin.app.redrives.records import LEASE_MS, RedriveRun, save
from fanin.app.redrives.redrive import RedriveService
from fanin.domain import limits
from fanin.domain.batch import LIVE, Batch, Kind, Mode, OnFailure, State
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import MAX_BATCH_ID
from fanin.domain.marks import Failure
from fanin.domain.redrives import OrdinalRange, Redrive, RedriveState, Redriving
from fanin.errors import BatchGone, BatchNotFound, ChannelRefused, InvalidRequest, Throttled
from tests.unit.app.conftest import Crash
from tests.unit.app.redrives.conftest import FIFO, QUEUE, SMALL, Failed


def test_pressed_again_it_finds_nothing_left(failed):
    batch = failed.failures(4)
    first = failed.service().redrive(batch.batch_id)

    for _ in range(3):
        again = failed.service().redrive(batch.batch_id)

        assert (again.items, again.already, again.batch_id, again.finished) == (0, 4, None, True)
    assert failed.bodies().total() == 4
    # One that found nothing leaves no record for each press.
    page = failed.service().redrives(batch.batch_id).redrives
    assert [one.items for one in page] == [4, 0]
    assert page[0] == first


def test_a_selection_by_error_and_by_range_takes_what_meets_both(failed):
    reasons = {n: f"row {n} of 'a'" if n % 2 else "no disk" for n in range(8)}
    batch = failed.failures(8, reasons=reasons)

    request = Redrive(errors=["row <n> of <text>"], ranges=[OrdinalRange(0, 4)])
    assert failed.service().redrive(batch.batch_id, request).items == 2
    assert failed.bodies() == {"body 1": 1, "body 3": 1}


def test_a_dry_run_counts_and_writes_nothing(failed):
    batch = failed.failures(8, without={1}, sources={2: "https://sqs/gone", 3: ""})
    writes = failed.accesses.writes.total()

    dry = failed.service().redrive(batch.batch_id, Redrive(dry_run=True))

    assert (dry.items, dry.not_kept, dry.not_kept_items, dry.batch_id, dry.name) == (5, 1, (1,), None, "")
    assert sorted(dry.refused.values()) == [1, 1]
    assert failed.accesses.writes.total() == writes
    assert not failed.sent()


def test_failures_that_cannot_be_sent_are_counted_and_left(failed):
    batch = failed.failures(6, without={0, 5}, sources={2: "https://sqs/gone"})
    service = failed.service()

    done = service.redrive(batch.batch_id)

    assert (done.items, done.not_kept, done.not_kept_items) == (3, 2, (0, 5))
    ((why, count),) = done.refused.items()
    assert "https://sqs/gone" in why
    assert count == 1
    # The queue is made again: the failure was not taken, so the next redrive looks again, and sends it.
    failed.memory.channels.queues["https://sqs/gone"] = []
    assert service.redrive(batch.batch_id).items == 1
    assert failed.bodies("https://sqs/gone") == {"body 2": 1}


def test_messages_go_to_the_queue_that_is_named(failed):
    batch = failed.failures(2, sources={0: "https://sqs/gone", 1: ""}, groups={0: "g"})

    done = failed.service().redrive(batch.batch_id, Redrive(queue_url=FIFO))

    assert done.items == 2
    first, second = failed.sent(FIFO)
    assert (first.group, first.once) == ("g", first.attributes["fanin-item"])
    assert second.group


def test_a_queue_that_may_not_be_used_or_a_bad_selection_is_refused_at_once(failed):
    batch = failed.failures(1)
    writes = failed.accesses.writes.total()

    with pytest.raises(ChannelRefused, match=r"https://sqs/gone"):
        failed.service().redrive(batch.batch_id, Redrive(queue_url="https://sqs/gone"))
    with pytest.raises(InvalidRequest, match="an error"):
        failed.service().redrive(batch.batch_id, Redrive(errors=[""]))
    assert failed.accesses.writes.total() == writes


def test_a_message_that_its_queue_refuses_fails_its_new_item_and_is_kept_there(failed):
    batch = failed.failures(4, sources={1: SMALL})

    done = failed.service().redrive(batch.batch_id)

    assert done.items == 4
    note = failed.noted(failed.new(batch))
    assert (note.reason, note.source, note.kept) == ("redrive: too large", SMALL, IN_ROW)
    failed.ack_all()
    new = failed.new(batch)
    assert (new.state, new.failed) == (State.COMPLETE, 1)
    # Nothing is lost: the new batch redrives it, and the first one does not.
    del failed.memory.channels.refusing[SMALL]
    assert failed.service().redrive(batch.batch_id).items == 0
    assert failed.service().redrive(new.batch_id).items == 1
    assert failed.new(new).items == 1
    assert failed.bodies(SMALL) == {"body 1": 1}


def test_a_new_batch_that_is_cancelled_stops_the_redrive(failed):
    batch = failed.failures(9)
    failed.service(at_once=1).redrive(batch.batch_id)
    failed.fresh().cancel(failed.new(batch).batch_id)

    failed.work()

    (first,) = failed.service().redrives(batch.batch_id).redrives
    assert first.finished
    assert (first.items, failed.bodies().total()) == (3, 3)
    # Whatever it has not sent, and what was sent and is not done, stays for the next.
    rest = failed.service().redrive(batch.batch_id)
    assert rest.items == 9
    assert failed.bodies() == {f"body {n}": 2 if n < 3 else 1 for n in range(9)}


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("moment", ["batches.allocate_once", "channels.send"])
def test_a_new_batch_that_is_removed_stops_the_redrive_and_loses_nothing_that_is_not_done(
    failed, moment, deleted
):
    # Given a redrive that breaks off on a page, and whose new batch is then cancelled and removed
    batch = failed.failures(9)
    failed.service(at_once=1).redrive(batch.batch_id)
    new = failed.new(batch).batch_id
    failed.fresh().mark(sorted(failed.items()["body 1"])).whole()
    failed.crash_at(moment, "before")
    with pytest.raises(Crash):
        failed.work()
    failed.fresh().cancel(new)
    failed.fresh().remove(new)
    if deleted:
        failed.memory.batches._rows.pop(new)

    failed.clock.advance(LEASE_MS)
    goes_on = failed.service().redrive(batch.batch_id)
    # Then it is finished, and the next redrive of the selection finds all that is not done
    assert (goes_on.finished, goes_on.items) == (True, 9 if deleted else 3)
    last = failed.service().redrive(batch.batch_id)
    assert (last.items, last.already) == ((2, 7) if deleted else (8, 1))
    assert failed.bodies() == {f"body {n}": 2 if n in {0, 2} else 1 for n in range(9)}


def test_nothing_is_sent_into_a_new_batch_that_is_removed_before(failed):
    # Given a page of which the queue refuses a message
    batch = failed.failures(3, sources={1: SMALL})

    def remove() -> None:
        new = failed.new(batch).batch_id
        failed.fresh().cancel(new)
        failed.fresh().remove(new)

    # When its new batch is removed while the page is delivered
    failed.at("batches.allocate_once", "after", remove)
    stopped = failed.service().redrive(batch.batch_id)
    # Then the next redrive delivers it into another
    assert (stopped.finished, stopped.items, failed.bodies()) == (True, 0, {})
    done = failed.service().redrive(batch.batch_id)
    assert (done.finished, done.items) == (True, 3)
    failed.ack_all()
    found = failed.fresh().status(done.batch_id or 0).batch  # of two that retry the batch
    assert (found.state, found.failed) == (State.COMPLETE, 1)


def test_a_batch_that_is_removed_while_it_is_redriven_leaves_a_new_batch_that_completes(failed):
    batch = failed.failures(9)
    failed.service(at_once=1).redrive(batch.batch_id)
    failed.fresh().remove(batch.batch_id)

    failed.work()
    failed.ack_all()

    assert failed.new(batch).state is State.COMPLETE


def test_a_batch_that_is_removed_during_the_call_leaves_a_new_batch_that_completes(failed):
    # Given a batch that somebody removes while a call is at its second page
    batch = failed.failures(9)
    failed.at("parts.mark_redriven", "before", lambda: None)
    failed.at("channels.send", "after", lambda: failed.fresh().remove(batch.batch_id))
    with pytest.raises(BatchGone):
        failed.service().redrive(batch.batch_id)
    # Then what it has sent can complete, since nobody goes on with it
    failed.ack_all()
    assert (failed.new(batch).state, failed.new(batch).items) == (State.COMPLETE, 3)
    assert not failed.memory.redrives.waiting


def test_a_job_that_got_further_before_it_failed_is_not_tried_again_but_followed(failed):
    """Else a long redrive through a queue that is busy now and then would use up the tries of its job."""
    # Given a redrive whose queue becomes busy after some pages
    batch = failed.failures(9)
    failed.service(page=1, at_once=1).redrive(batch.batch_id)
    (job,) = failed.memory.redrives.waiting
    service = failed.service(page=1)
    failed.later(1, "parts.mark_redriven", "before", lambda: failed.memory.channels.busy.add(QUEUE))

    def work() -> None:
        service.work(job["batch_id"], job["redrive"], job["owner"], until=failed.clock.now() + 60_000)

    # When a job gets some pages further
    work()
    # Then another follows; and one that gets no further fails
    assert failed.memory.redrives.waiting == [job, job]
    assert failed.bodies().total() == 2
    with pytest.raises(Throttled):
        work()
    failed.memory.channels.busy.clear()
    work()
    assert failed.bodies() == {f"body {n}": 1 for n in range(9)}


def test_failures_of_a_pattern_are_not_redriven(failed):
    """Whoever gets such a message replies to its scatter, or acknowledges to its frame."""
    batch = failed.failures(1, kind=Kind.SCATTER)

    with pytest.raises(InvalidRequest, match="the batch of a scatter"):
        failed.service().redrive(batch.batch_id, Redrive(dry_run=True))


def test_held_items_are_sent_again_under_their_own_ids(failed):
    batch = failed.failures(5, live=True)

    done = failed.service().redrive(batch.batch_id)

    assert (done.items, done.batch_id, done.finished) == (5, batch.batch_id, True)
    items = sorted(item for found in failed.items().values() for item in found)
    assert failed.service().redrive(batch.batch_id).items == 0
    failed.note(batch, items)  # they fail once more
    again = failed.service().redrive(batch.batch_id)
    assert again.items == 5
    assert failed.bodies() == {f"body {n}": 2 for n in range(5)}
    assert len({message.once for message in failed.sent()}) == 10
    failed.ack_all()
    failed.ledger.close(batch.batch_id)
    assert failed.row(batch).state is State.COMPLETE


def test_a_held_item_that_was_done_meanwhile_is_not_sent(failed):
    batch = failed.failures(3, live=True)
    rows, _ = failed.ports.parts.failures(batch.batch_id)
    failed.ledger.mark([rows[1].item]).whole()

    assert failed.service().redrive(batch.batch_id).items == 2
    assert set(failed.bodies()) == {"body 0", "body 2"}


def _accesses(live: bool = False) -> list[tuple[str, int]]:
    """Every access of a redrive that nothing disturbs, but reads: its name, and which of them it is."""
    world, seen = Failed(), Counter[str]()
    batch = world.failures(5, live=True) if live else poisoned(world)
    world.memory.accesses._on_call = lambda call, moment: seen.update([call] if moment == "before" else [])
    reads = set(world.accesses.reads)
    world.service(at_once=1).redrive(batch.batch_id)
    world.work()
    reads |= set(world.accesses.reads)
    return [(call, nth) for call, count in sorted(seen.items()) for nth in range(count) if call not in reads]


def redriven(world: Failed, batch: Batch) -> None:
    """Press, and let the worker finish."""
    world.service(at_once=1).redrive(batch.batch_id)
    world.work()


def dies(failed: Failed, batch: Batch, call: str, nth: int, moment: str) -> None:
    """Press, and die at an access."""
    for _ in range(nth):
        failed.at(call, moment, lambda: None)
    failed.crash_at(call, moment)
    with pytest.raises(Crash):
        redriven(failed, batch)


def poisoned(world: Failed) -> Batch:
    """Eight failures: the queue of one refuses its message, and one has none."""
    return world.failures(8, sources={1: SMALL}, without={6})


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("call", "nth"), _accesses())
def test_a_crash_at_any_access_loses_nothing_and_sends_each_under_one_item(failed, call, nth, moment):
    batch = poisoned(failed)
    dies(failed, batch, call, nth, moment)
    assert failed.happened
    failed.worker_dies()

    redriven(failed, batch)

    done = next(one for one in failed.service().redrives(batch.batch_id).redrives if one.items)
    assert (done.items, done.not_kept, done.already) == (7, 1, 0)
    assert all(len(items) == 1 for items in failed.items().values())
    assert set(failed.bodies()) == {f"body {n}" for n in (0, 2, 3, 4, 5, 7)}
    note = failed.noted(failed.new(batch))
    assert note.kept == IN_ROW
    failed.ack_all()
    assert failed.new(batch).state is State.COMPLETE


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("call", "nth"), _accesses(live=True))
def test_a_crash_while_held_items_are_redriven_sends_each_under_its_own_id_or_after_the_end_under_one_new(
    failed, call, nth, moment, ended
):
    # Given a redrive of held items that dies
    batch = failed.failures(5, live=True)
    own = {f"body {row.ordinal}": row.item for row in failed.ports.parts.failures(batch.batch_id)[0]}
    dies(failed, batch, call, nth, moment)
    failed.memory.redrives.waiting.clear()
    if ended:
        failed.fresh().cancel(batch.batch_id)
    before = failed.items()
    assert all(items == {own[body]} for body, items in before.items())
    # When the same is pressed again, and another selection
    failed.clock.advance(LEASE_MS)
    redriven(failed, batch)
    failed.service().redrive(batch.batch_id, Redrive(ranges=[OrdinalRange(0, 5)]))
    # Then each has gone out, under its own id while the batch lived, and under one new id after its end
    new = {body: items - {own[body]} for body, items in failed.items().items()}
    assert {body: len(items) for body, items in new.items()} == dict.fromkeys(own, int(ended))
    if not ended:
        failed.ack_all()
        failed.ledger.close(batch.batch_id)
        assert failed.row(batch).state is State.COMPLETE


def holding(failed: Failed, count: int) -> tuple[Batch, list[str]]:
    """A live batch that holds its failed items, each with its message."""
    batch, (group,) = failed.batch(count, on_failure=OnFailure.HOLD)
    fail_with_messages(failed, list(group))
    return failed.row(batch), list(group)


def fail_with_messages(failed: Failed, items: list[str]) -> None:
    failed.fresh().mark(
        [Failure(item, "x", KeptMessage(f"body {item.rpartition(':')[2]}"), source=QUEUE) for item in items]
    ).whole()


def test_two_redrives_across_the_end_of_a_batch_send_each_item_into_one_new_batch(failed):
    # Given a redrive that took held items, died before it sent them, and a batch that has ended since
    batch, items = holding(failed, 3)
    failed.crash_at("channels.send", "before")
    with pytest.raises(Crash):
        failed.service().redrive(batch.batch_id)
    failed.ledger.mark(items[:1]).whole()
    failed.ledger.cancel(batch.batch_id)
    # When another selection is redriven, and then the first one goes on
    other = failed.service().redrive(batch.batch_id, Redrive(ranges=[OrdinalRange(0, 2)]))
    failed.clock.advance(LEASE_MS)
    first = failed.service().redrive(batch.batch_id)
    # Then each failure is sent by one of the two, and what was done meanwhile by neither
    assert (other.items, first.items) == (1, 2)
    assert failed.bodies() == {"body 1": 1, "body 2": 1}
    failed.ack_all()
    for one in (other, first):
        assert failed.ledger.status(one.batch_id or 0).batch.state is State.COMPLETE


def test_a_late_worker_does_not_undo_what_was_taken_after_the_end(failed):
    # Given a worker that is about to take held items, and stalls until the batch has ended
    batch, _ = holding(failed, 2)

    def meanwhile() -> None:
        failed.ledger.cancel(batch.batch_id)
        failed.clock.advance(LEASE_MS)
        failed.service().redrive(batch.batch_id)

    failed.at("parts.mark_redriven", "before", meanwhile)

    failed.service().redrive(batch.batch_id)
    failed.service().redrive(batch.batch_id, Redrive(ranges=[OrdinalRange(0, 2)]))
    # Then each message was sent under one item id
    assert {body: len(ids) for body, ids in failed.items().items()} == {"body 0": 1, "body 1": 1}


def test_a_late_worker_takes_nothing_for_a_redrive_that_has_gone_on(failed):
    # Given a worker that stalls on the first page, while others send it, its batch ends, and they finish
    batch = failed.failures(2)

    def meanwhile() -> None:
        failed.clock.advance(LEASE_MS)
        failed.service(page=1, at_once=1).redrive(batch.batch_id)
        new = failed.new(batch).batch_id
        failed.ports.batches.end(new, State.ORPHANED, now=failed.clock.now(), sources=LIVE)
        failed.clock.advance(LEASE_MS)
        assert failed.service(page=1).redrive(batch.batch_id).finished
        failed.crash_at("channels.send", "before")

    failed.at("parts.mark_redriven", "before", meanwhile)
    # When it wakes up, and would die before it sends anything
    with suppress(Crash):
        failed.service(page=1).redrive(batch.batch_id)
    # Then what is not under way any more can be redriven
    assert failed.bodies() == {"body 0": 1, "body 1": 1}
    assert failed.service().redrive(batch.batch_id, Redrive(dry_run=True)).items == 1


@pytest.mark.parametrize("torn", [None, b"{", b"[]", b'{"body": "x", "attributes": {"a": {}}}', b"\xff"])
def test_a_message_that_is_gone_or_cannot_be_read_stops_no_other(failed, torn):
    batch = failed.failures(4)
    if torn is None:
        failed.ports.parts.delete_messages(batch.batch_id, [1])
    else:
        failed.ports.parts.put_messages(batch.batch_id, {1: torn}, again=True, expires_at=batch.expires_at)

    done = failed.service().redrive(batch.batch_id)

    assert (done.items, done.finished) == (4, True)
    assert failed.bodies() == {f"body {n}": 1 for n in (0, 2, 3)}
    note = failed.noted(failed.new(batch))
    assert (note.reason, note.kept) == ("redrive: its kept message is gone, or cannot be read", "")


def test_a_redrive_begins_with_a_record_of_its_first_page(failed):
    """Whoever goes on after a crash has only this."""
    # Given failures of which the first page cannot take one, and others follow
    batch = failed.failures(5, without={1})
    now = failed.clock.now()
    failed.service(page=3).redrive(batch.batch_id)
    # Then what is about to be taken was written down before any was
    _, _, first = failed.memory.records.changes[0]
    assert first is not None
    assert (first.name, first.expires_at) == ("redrive/75549a8a255852f2/000000", batch.expires_at)
    value, page = first.value, first.value["page"]
    assert len(value["owner"]) == 16
    assert (value["generation"], value["started_at"], value["until"]) == (0, now, now + 120_000)
    assert (value["part"], value["to"], value["done"]) == (0, None, False)
    assert (page["number"], page["before"], page["last"]) == (0, None, False)
    assert page["plan"] == [[0, now], [2, now]]
    assert (value["counts"]["items"], value["counts"]["not_kept_items"]) == (0, [1])


@pytest.mark.parametrize(("count", "state"), [(1_000, RedriveState.FINISHED), (1_001, RedriveState.RUNNING)])
def test_a_call_sends_up_to_a_thousand_messages_itself(count, state):
    # Given a service as it is deployed
    failed = Failed(width=64)
    batch = failed.failures(count)
    # When as many failures are redriven as a call sends itself, or one more
    done = RedriveService(failed.fresh()).redrive(batch.batch_id)
    # Then the call is finished, or has left the last one to the worker
    assert (done.items, done.state) == (1_000, state)
    failed.work()
    assert failed.bodies() == {f"body {n}": 1 for n in range(count)}


def test_a_call_leaves_the_rest_to_the_worker_after_eight_seconds(failed):
    # Given a queue that takes four seconds for a message
    batch = failed.failures(5)
    for _ in range(5):
        failed.at("channels.send", "after", lambda: failed.clock.advance(4_000))
    # When its failures are redriven, one in a page
    begun = failed.service(page=1).redrive(batch.batch_id)
    # Then the call returns in time for its caller
    assert (begun.items, begun.state) == (2, RedriveState.RUNNING)
    assert len(failed.memory.redrives.waiting) == 1


def test_a_dry_run_counts_for_twenty_seconds(failed):
    # Given a table that takes ten seconds to list a page of failures
    batch = failed.failures(5)
    for _ in range(5):
        failed.at("parts.failures", "after", lambda: failed.clock.advance(10_000))
    # When they are counted, one in a page
    found = failed.service(page=1).redrive(batch.batch_id, Redrive(dry_run=True))
    # Then two were counted, and there are more
    assert found == Redriving(
        name="", retry_of=batch.batch_id, batch_id=None, state=RedriveState.RUNNING, items=2
    )


def test_pages_without_a_failure_to_take_cost_one_write(failed):
    # Given a failure to take behind as many others as one step reads
    batch = failed.failures(LISTED + 1, reasons={LISTED: "wanted"})
    done = failed.service(page=1).redrive(batch.batch_id, Redrive(errors=["wanted"]))
    # Then the record was written at the beginning, behind the others, and as the page was sent
    assert (done.items, done.finished) == (1, True)
    assert failed.accesses.writes["records.put"] == 3


def test_two_who_press_at_the_same_moment_get_one_redrive(failed):
    # Given somebody who is about to write the first page when another call of the same does all of it
    batch = failed.failures(5)
    others: list[Redriving] = []
    failed.at("records.put", "before", lambda: others.append(failed.service().redrive(batch.batch_id)))
    mine = failed.service().redrive(batch.batch_id)
    # Then it has the redrive of the other, and has sent nothing itself
    assert [mine] == others
    assert mine.items == 5
    assert failed.bodies() == {f"body {n}": 1 for n in range(5)}
    assert len(failed.service().redrives(batch.batch_id).redrives) == 1


def test_of_two_who_go_on_for_a_dead_worker_at_the_same_moment_one_does(failed):
    # Given a redrive whose worker has died
    batch = failed.failures(9)
    failed.service(at_once=1).redrive(batch.batch_id)
    failed.worker_dies()
    # When two calls find it at the same moment
    failed.at("records.put", "before", lambda: failed.service(at_once=1).redrive(batch.batch_id))
    late = failed.service(at_once=1).redrive(batch.batch_id)
    # Then one has sent a page and handed the rest to the worker; the other shows how far that is
    assert (late.items, late.state) == (6, RedriveState.RUNNING)
    assert len(failed.memory.redrives.waiting) == 1
    failed.work()
    assert failed.bodies() == {f"body {n}": 1 for n in range(9)}


def test_a_worker_counts_as_alive_for_two_minutes(failed):
    batch = failed.failures(9)
    failed.service(at_once=1).redrive(batch.batch_id)

    failed.clock.advance(119_999)
    assert failed.service().redrive(batch.batch_id).items == 3
    failed.clock.advance(1)
    done = failed.service().redrive(batch.batch_id)
    assert (done.finished, done.items) == (True, 9)
    assert failed.bodies() == {f"body {n}": 1 for n in range(9)}


def test_a_job_of_a_redrive_that_is_finished_or_not_there_does_nothing(failed):
    # Given a redrive that is finished
    batch = failed.failures(2)
    done = failed.service().redrive(batch.batch_id)
    job = f"{REDRIVE}{done.name}"
    writes = failed.accesses.writes.total()
    # When jobs come for it, and for one that nobody knows
    for name in (job, f"{job}0"):
        assert failed.service().work(batch.batch_id, name, "me", until=2**50) is None
    assert failed.accesses.writes.total() == writes
    assert failed.bodies().total() == 2


def test_a_job_tells_how_far_it_got_and_hands_the_rest_to_the_next(failed):
    # Given a redrive with three pages to go
    batch = failed.failures(12)
    failed.service(at_once=1).redrive(batch.batch_id)
    (job,) = failed.memory.redrives.waiting
    # When a job has time for one page
    begun = failed.service().work(batch.batch_id, job["redrive"], job["owner"], until=failed.clock.now())
    # Then it says so, and the same job waits once more
    assert begun is not None
    assert (begun.items, begun.state) == (6, RedriveState.RUNNING)
    assert failed.memory.redrives.waiting == [job, job]
    # And one that finishes the redrive leaves no other
    done = failed.service().work(batch.batch_id, job["redrive"], job["owner"], until=2**50)
    assert done is not None
    assert (done.items, done.state) == (12, RedriveState.FINISHED)
    assert len(failed.memory.redrives.waiting) == 2
    assert failed.bodies() == {f"body {n}": 1 for n in range(12)}


def test_redrives_are_listed_by_time_up_to_the_rows_that_a_call_may_read(failed):
    # Given more redrives than a call may read, each of a selection of its own
    batch, _ = failed.batch()
    store = failed.ports.records
    for n in range(limits.MAX_ROWS):
        request = Redrive(errors=[f"error {n}"])
        save(store, batch, RedriveRun(batch.batch_id, request, 0, started_at=n))
    service = failed.service()
    page = service.redrives(batch.batch_id, limit=1_000)
    # Then a page has as many as a call may read beside the batch, and its cursor leads on
    assert len(page.redrives) == limits.MAX_ROWS - 1
    started = [one.started_at or 0 for one in page.redrives]
    assert started == sorted(started)
    rest = service.redrives(batch.batch_id, cursor=page.cursor)
    assert (len(rest.redrives), rest.cursor) == (1, None)
    # And one of the usual size has a hundred
    assert len(service.redrives(batch.batch_id).redrives) == 100
    assert len(service.redrives(batch.batch_id, limit=1).redrives) == 1


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_page_of_redrives_has_a_limit(failed, limit):
    batch, _ = failed.batch()
    with pytest.raises(InvalidRequest, match=f"^limit must be a whole number from 1 to 1000, not {limit}$"):
        failed.service().redrives(batch.batch_id, limit=limit)


@pytest.mark.parametrize("batch_id", [-1, MAX_BATCH_ID + 1])
def test_a_number_that_cannot_be_the_id_of_a_batch_is_refused(failed, batch_id):
    why = f"^batch_id must be a whole number from 0 to {MAX_BATCH_ID}, not {batch_id}$"
    with pytest.raises(InvalidRequest, match=why):
        failed.service().redrives(batch_id)
    with pytest.raises(InvalidRequest, match=why):
        failed.service().redrive(batch_id)
    for unknown in (0, MAX_BATCH_ID):
        with pytest.raises(BatchNotFound):
            failed.service().redrives(unknown)
        with pytest.raises(BatchNotFound):
            failed.service().redrive(unknown)


def test_a_call_that_meets_a_busy_queue_tells_how_far_it_got(failed):
    # Given a queue that becomes busy after the first page
    batch = failed.failures(9)
    failed.later(3, "parts.mark_redriven", "before", lambda: failed.memory.channels.busy.add(QUEUE))
    begun = failed.service().redrive(batch.batch_id)
    # Then the call says what was sent, and the worker does the rest, once the queue takes it
    assert (begun.items, begun.state) == (3, RedriveState.RUNNING)
    assert begun.batch_id == failed.new(batch).batch_id
    failed.memory.channels.busy.clear()
    failed.work()
    assert failed.bodies() == {f"body {n}": 1 for n in range(9)}


@pytest.mark.parametrize("mode", Mode)
def test_a_live_batch_that_does_not_hold_its_failures_is_redriven_when_it_has_ended(failed, mode):
    # Given a live batch with a failure that counts as done
    batch, (group,) = failed.batch(2, mode=mode)
    failed.ledger.mark([Failure(group[0], "x")]).whole()
    failed.note(batch, [group[0]])
    writes = failed.accesses.writes.total()
    # When it is redriven, then the call is refused and says what to do
    why = (
        f"^batch {batch.batch_id} is open, and does not hold its failed items; redrive them when it has"
        f" ended. `fanin why {batch.batch_id}` says what it waits for$"
    )
    with pytest.raises(InvalidRequest, match=why):
        failed.service().redrive(batch.batch_id)
    assert failed.accesses.writes.total() == writes
    # And at its end the failure is sent again
    failed.ledger.mark([group[1]]).whole()
    failed.ledger.close(batch.batch_id)
    assert failed.service().redrive(batch.batch_id).items == 1


def test_an_item_that_was_released_while_a_redrive_took_it_can_be_redriven(failed):
    # Given a redrive that takes a held item in the moment in which another process gives it up
    batch, _ = holding(failed, 1)
    redriving = failed.service()

    def press() -> None:
        with pytest.raises(Crash):
            redriving.redrive(batch.batch_id)

    failed.at("words.clear", "before", press)
    failed.crash_at("channels.send", "before")
    failed.fresh().release(batch.batch_id)
    assert not failed.sent()
    failed.ledger.close(batch.batch_id)
    assert failed.row(batch).failed == 1
    # When the batch has ended, then its failure is redriven, whoever presses
    failed.clock.advance(LEASE_MS)
    assert failed.service().redrive(batch.batch_id, Redrive(ranges=[OrdinalRange(0, 1)])).items == 1
    assert failed.bodies() == {"body 0": 1}


def test_what_was_sent_from_a_batch_and_not_done_at_its_end_can_be_redriven_once_more(failed):
    # Given held items that were redriven, and a batch that ended before their consumer came to all of them
    batch, items = holding(failed, 3)
    failed.service().redrive(batch.batch_id)
    failed.ledger.mark(items[:1]).whole()
    failed.ledger.cancel(batch.batch_id)
    fail_with_messages(failed, items[1:2])  # too late to be noted

    done = failed.service().redrive(batch.batch_id)
    # Then what was not done is sent under items of a new batch, once, whoever presses
    assert done.items == 2
    assert done.batch_id not in {None, batch.batch_id}
    assert failed.service().redrive(batch.batch_id).items == 0
    other = Redrive(ranges=[OrdinalRange(0, 3)])
    assert failed.service().redrive(batch.batch_id, other).items == 0
    assert failed.bodies() == {"body 0": 1, "body 1": 2, "body 2": 2}


def test_a_call_that_stalled_hands_nothing_over_when_another_has_gone_on(failed):
    # Given a call that stalls on its second page for longer than its lease, while another goes on
    batch = failed.failures(12)

    def meanwhile() -> None:
        failed.clock.advance(LEASE_MS)
        failed.service(at_once=1).redrive(batch.batch_id)

    failed.later(3, "parts.mark_redriven", "before", meanwhile)
    late = failed.service().redrive(batch.batch_id)
    # Then it leaves the redrive to the other, whose job is the only one
    assert (late.items, late.state) == (6, RedriveState.RUNNING)
    assert len(failed.memory.redrives.waiting) == 1
    failed.work()
    assert failed.bodies().keys() == {f"body {n}" for n in range(12)}
    assert all(len(items) == 1 for items in failed.items().values())


def test_an_old_job_leaves_a_redrive_alone_that_somebody_else_goes_on_with(failed):
    batch = failed.failures(12)
    failed.service(at_once=1).redrive(batch.batch_id)
    old = failed.memory.redrives.waiting.pop()
    failed.clock.advance(LEASE_MS)
    failed.service(at_once=1).redrive(batch.batch_id)
    writes = failed.accesses.writes.total()

    done = failed.service().work(old["batch_id"], old["redrive"], old["owner"], until=2**50)

    assert done is None
    assert failed.accesses.writes.total() == writes


def test_a_large_redrive_is_left_to_the_worker(failed):
    batch = failed.failures(20)

    begun = failed.service(at_once=2).redrive(batch.batch_id)

    assert (begun.state, begun.items) == (RedriveState.RUNNING, 6)
    assert len(failed.memory.redrives.waiting) == 1
    again = failed.service(at_once=2).redrive(batch.batch_id)
    assert again == begun
    failed.work()
    (done,) = failed.service().redrives(batch.batch_id).redrives
    assert (done.state, done.items, done.batch_id) == (RedriveState.FINISHED, 20, begun.batch_id)
    assert failed.bodies() == {f"body {n}": 1 for n in range(20)}
    failed.ack_all()
    assert failed.new(batch).state is State.COMPLETE
