from dataclasses import replace
from datetime import timedelta

import pytest

from fanin import ItemFailed, Target, names
from fanin.app.diagnosis.gathering import MOST_READS, Facts, known_ranges
from fanin.app.ledger.reaper import Reaped
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.app.ports.queues import Figures, QueueMapping, QueueReport
from fanin.app.services import Services
from fanin.domain import ids
from fanin.domain.batch import Batch, OnFailure, State, Trouble
from fanin.domain.diagnosis import Code, Known, Retry, SentItems, Severity
from fanin.domain.marks import Failure
from fanin.domain.reports import MissingRange
from fanin.domain.targets import TargetType
from fanin.errors import InvalidItemId, InvalidRequest, RequestTooLarge
from fanin.testing import InMemoryService
from tests.unit.app.conftest import Crash
from tests.unit.app.diagnosis.conftest import URL


class TestSent:
    def test_a_note_costs_one_write_and_repeating_it_changes_nothing(self, scene):
        batch_id = scene.group(10).batch_id
        before = scene.accesses.writes.total()

        scene.diagnostics.note_sent(batch_id, SentItems(URL, 0, 5))
        assert scene.accesses.writes.total() == before + 1
        for stop in (10, 10, 5):
            scene.diagnostics.note_sent(batch_id, SentItems(URL, 0, stop))

        now = scene.clock.now()
        found = scene.memory.parts.sent(batch_id, upto=0, limit=9)
        assert found == ([SentRow(URL, 0, 10, now, now)], False)

    @pytest.mark.parametrize(
        ("sent", "why"),
        [
            (SentItems(URL, 0, 0), "^to must be a whole number from 1 to"),
            (SentItems(URL, -1, 3), "^from must be a whole number from 0 to"),
            (SentItems(URL, 3, 3), "^to must be a whole number from 4 to"),
            (SentItems(URL, 0, 11), "has 10 items, so none up to 11"),
            (SentItems(URL, 0, ids.MAX_ITEMS + 1), f"^to must be a whole number from 1 to {ids.MAX_ITEMS},"),
            (SentItems(URL, ids.MAX_ITEMS + 1, 0), f"^from must be .* from 0 to {ids.MAX_ITEMS},"),
            (SentItems("", 0, 10), "^queue must be text of 1 to 1024 characters"),
            (SentItems("x" * 1_025, 0, 10), "^queue must be text of 1 to 1024 characters"),
        ],
    )
    def test_what_was_never_added_or_has_no_queue_is_refused(self, scene, sent, why):
        group = scene.group(10)

        with pytest.raises(InvalidRequest, match=why):
            scene.diagnostics.note_sent(group.batch_id, sent)


class TestRetries:
    def test_a_forged_id_is_refused_and_nothing_is_written(self, scene):
        group, other = scene.group(3), scene.group(3)
        forged = f"{group.batch_id}:{other.id}:0"

        with pytest.raises(InvalidItemId):
            scene.diagnostics.note_retries([Retry(group[0], 2, "no"), Retry(forged, 2, "no")])

        assert scene.accesses.writes["parts.put_retries"] == 0

    @pytest.mark.parametrize(
        ("attempt", "why"),
        [
            (Retry("", 0, ""), "^attempt must be a whole number from 1 to 2147483647"),
            (Retry("", 2**31, ""), "^attempt must be a whole number from 1 to 2147483647"),
            (Retry("", 2, "x" * 1_025), "^error must be text of 0 to 1024 characters"),
            (Retry("", 2, "\ud800"), "^error has one half of a surrogate pair"),
            (Retry("", 2, "", "x" * 1_025), "^queue must be text of 0 to 1024 characters"),
        ],
    )
    def test_what_is_out_of_bounds_is_refused(self, scene, attempt, why):
        with pytest.raises(InvalidRequest, match=why):
            scene.diagnostics.note_retries([replace(attempt, item=scene.group(3)[0])])

    def test_there_are_a_thousand_at_most(self, scene):
        with pytest.raises(RequestTooLarge, match="1001 failed attempts"):
            scene.diagnostics.note_retries([Retry(scene.group(1)[0], 2, "")] * 1_001)

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_items_that_were_added_since_the_batch_was_read_can_be_noted(self, scene, order):
        # Given a batch that was read when it had its first three items
        groups = [scene.group(3)]
        batch_id = groups[0].batch_id
        scene.diagnostics.note_retries([Retry(groups[0][2], 2, "")])
        groups.append(scene.ledger.add(batch_id, 3))
        # When attempts at earlier and later items are noted together, in either order
        scene.diagnostics.note_retries([Retry(groups[n][0], 2, "") for n in order])

        assert set(scene.memory.parts.retries(batch_id, range(6))) == {0, 2, 3}


def test_of_a_batch_that_has_ended_nothing_is_noted(scene):
    group = scene.group(10)
    scene.ledger.cancel(group.batch_id)

    scene.diagnostics.note_sent(group.batch_id, SentItems(URL, 0, 10))
    scene.diagnostics.note_retries([Retry(group[0], 2, "")])

    assert scene.accesses.writes["parts.put_sent"] == scene.accesses.writes["parts.put_retries"] == 0


def test_findings_and_ranges_stand_on_what_was_noted_and_seen(scene):
    # Given a batch whose messages wait in a queue with a disabled mapping
    batch = scene.waiting(Figures(10, 0, 0, retention=60))
    reports = scene.memory.inspection.reports
    reports[URL] = replace(reports[URL], consumers=(QueueMapping("importer", False, "Disabled"),))

    diagnosis = scene.diagnostics.why(batch.batch_id)

    assert [one.code for one in diagnosis.findings] == [Code.WAITING]
    assert [one.known for one in diagnosis.missing] == [Known.WAITING]


# What a person should look at: the most urgent comes first, and what was mended is gone.


class World:
    """A service with a consumer whose price service can be mended."""

    def __init__(self) -> None:
        self.service = InMemoryService()
        self.tracker = self.service.tracker
        self.queue = self.service.queue("rows")
        self.broken = True

        @self.tracker.sqs_handler
        def handle(_: object) -> None:
            if self.broken:
                raise ItemFailed("no price")

        self.handle = handle

    def failed(self, name: str, **options: object) -> int:
        with self.tracker.batch(user_key=name, **options) as batch:
            batch.send(self.queue, ["a"])
        self.service.consume(self.queue, self.handle)
        self.service.advance(timedelta(seconds=1))
        return batch.id

    def listed(self) -> list[tuple[str, Trouble]]:
        return [(one.batch.user_key, one.trouble) for one in self.tracker.attention().batches]


def test_a_stalled_batch_comes_before_fifty_newer_ones_that_failed():
    # Given a batch that stalls, and fifty newer ones that fail; twelve of these are redriven, and are fine
    world = World()
    with world.tracker.batch(user_key="payroll", stall_after=timedelta(minutes=15)) as payroll:
        group = payroll.add(10)
    with world.tracker.batch(user_key="forgotten", stall_after=timedelta(minutes=15)) as forgotten:
        world.tracker.ack(forgotten.add(100))
        world.service.advance(timedelta(hours=1))
        found = world.listed()
    assert found == [("payroll", Trouble.STALLED), ("forgotten", Trouble.NOT_CLOSED)]
    ids = [world.failed(f"failed-{number}") for number in range(50)]
    world.broken = False
    for batch_id in ids[:12]:
        world.tracker.redrive(batch_id)
    world.service.consume(world.queue, world.handle)

    attention = world.tracker.attention()
    # Then the stalled one is first, the redriven ones are gone, and the counts are whole
    first = attention.batches[0]
    assert (first.batch.user_key, first.trouble, first.action) == ("payroll", Trouble.STALLED, "why")
    shown = [one.batch.batch_id for one in attention.batches[1:]]
    assert shown == ids[::-1][: len(shown)]
    assert len(shown) >= 9
    assert attention.counts == {"stalled": 1, "failed": 38}
    # And activity ends a stall
    world.tracker.ack(group[:1])
    assert world.tracker.attention(limit=1).batches == ()


def test_pages_go_through_all_in_order():
    world = World()
    ids = [world.failed(str(number)) for number in range(5)]
    held = world.failed("held", on_failure="hold")
    found: list[int] = []
    cursor = None
    while True:
        page = world.tracker.attention(cursor=cursor, limit=2)
        found += [one.batch.batch_id for one in page.batches]
        if (cursor := page.cursor) is None:
            break
    assert found == [held, *reversed(ids)]


def test_held_items_until_they_are_redriven_and_failures_while_the_batch_lives():
    world = World()
    held = world.failed("held", on_failure="hold")
    with world.tracker.batch(user_key="live") as live:
        world.tracker.fail(live.add(2)[0], "broken")
        assert world.listed() == [("held", Trouble.HELD), ("live", Trouble.FAILING)]
        world.broken = False
        world.tracker.redrive(held)
        world.service.consume(world.queue, world.handle)
        assert world.listed() == [("live", Trouble.FAILING)]


def test_a_parent_needs_nobody_once_the_failures_of_its_children_are_redriven():
    # Given a batch, nested two deep, whose innermost item fails
    world = World()
    with world.tracker.batch(user_key="top") as top:
        (above,) = top.add(1)
    with world.tracker.batch(user_key="middle", parent_item=above) as middle:
        (item,) = middle.add(1)
    failed = world.failed("bottom", parent_item=item)
    assert sorted(world.listed()) == [(name, Trouble.FAILED) for name in ("bottom", "middle", "top")]

    world.broken = False
    world.tracker.redrive(failed)
    # Then none is listed, nor has a flag
    assert world.listed() == []
    assert [world.tracker.status(one).batch.attention for one in (top.id, middle.id, failed)] == [None] * 3


def test_tolerated_failures_cancelled_and_removed_batches_need_nobody():
    world = World()
    world.failed("tolerated", tolerated_failures=1)
    with world.tracker.batch(user_key="cancelled") as cancelled:
        world.tracker.fail(cancelled.add(2)[0], "broken")
    world.tracker.cancel(cancelled.id)
    removed = world.failed("removed")
    assert world.listed() == [("removed", Trouble.FAILED)]
    world.tracker.remove(removed)
    assert world.listed() == []
    assert world.tracker.attention().counts == {}


def test_a_target_that_fails_until_it_is_told():
    # Given a batch that ends, and the queue that is to be told is gone
    world = World()
    sqs, queue = world.service.sqs, world.service.queue("told")
    sqs.tag_queue(QueueUrl=queue, Tags={"fanin:channel": "yes"})
    target = Target(TargetType.SQS, queue_url=queue)
    with world.tracker.batch(user_key="report", on_end=[target]) as batch:
        group = batch.add(1)
    sqs.delete_queue(QueueUrl=queue)
    world.tracker.ack(group)
    world.service.advance(timedelta(minutes=5))
    # When somebody asks what needs attention, then it is that
    (one,) = world.tracker.attention().batches
    assert (one.trouble, one.action) == (Trouble.TARGETS, "targets --redeliver")
    # And why says since when, and when it is tried again
    (told, _) = world.tracker.why(batch.id).findings
    (target,) = world.tracker.targets(batch.id)
    assert told.code is Code.TARGET_FAILS
    assert target.failing_since is not None
    assert target.next_at is not None
    assert "; it is tried again by 20" in told.detail
    # And when the queue is there again, then nobody needs to look
    assert world.service.queue("told") == queue
    sqs.tag_queue(QueueUrl=queue, Tags={"fanin:channel": "yes"})
    world.service.advance(timedelta(hours=3))
    assert world.tracker.attention().counts == {}


HOUR = 3_600_000
DELAYED = Figures(0, 0, 3, retention=345_600)
QUIET, BUSY = Figures(3, 0, 0, retention=345_600), Figures(0, 3, 0, retention=345_600)
EMPTY = Figures(0, 0, 0, retention=345_600)


def test_the_event_has_the_batch_and_the_first_finding(scene):
    batch = scene.waiting(QUIET, user_key="nightly")
    scene.clock.advance(HOUR)

    event = scene.stall(batch)

    assert event is not None
    assert (event.id, event.detail_type) == (
        f"{batch.batch_id}.stalled.{batch.touched_at}",
        names.BATCH_STALLED,
    )
    assert event.detail["user_key"] == "nightly"
    assert event.detail["finding"]["code"] == "waiting"
    assert "salt" not in event.detail


@pytest.mark.parametrize("figures", [BUSY, DELAYED], ids=["in flight", "delayed"])
def test_what_waits_for_a_good_reason_has_not_stalled(scene, figures):
    batch = scene.waiting(figures)
    scene.clock.advance(HOUR)

    assert scene.stall(batch) is None


def test_a_batch_whose_failed_items_are_held_has_not_stalled(scene):
    # Given a batch of which all is done but for the items that it holds
    batch, items = scene.batch(200, on_failure=OnFailure.HOLD)
    scene.ledger.mark(items[:100]).whole()
    scene.ledger.mark([Failure(item, "x") for item in items[100:]]).whole()
    scene.clock.advance(HOUR)
    # When it is asked why, then they are its first finding, counted as far as a few reads go
    scene.accesses.reads.clear()
    found = scene.diagnostics.why(batch.batch_id).findings
    assert scene.accesses.reads.total() <= MOST_READS
    assert found[0].code is Code.HELD
    assert 0 < found[0].evidence["held"] <= 100
    # And nobody is told of a stall
    assert scene.stall(batch) is None


def test_failed_items_that_are_held_have_not_stalled(scene):
    """Its messages are gone, as they should be: somebody decides about the items."""
    # Given a batch that holds its failed items, all of which were tried, and failed
    batch = scene.waiting(EMPTY, on_failure=OnFailure.HOLD)
    (missing,) = scene.ledger.missing(batch.batch_id).ranges
    items = [f"{missing.group}:{n}" for n in range(3)]
    scene.diagnostics.note_retries([Retry(item, 5, "no such customer") for item in items])
    scene.clock.advance(1_000)
    scene.ledger.mark([Failure(item, "dead letter") for item in items]).whole()
    # When nobody has decided for an hour
    scene.clock.advance(HOUR)
    # Then that is said, and nothing else
    (found,) = scene.diagnostics.why(batch.batch_id).findings
    assert (found.code, found.severity) == (Code.HELD, Severity.INFO)
    assert scene.stall(batch) is None


class TestReaper:
    def test_tells_of_a_stall_once(self, scene):
        scene.waiting(QUIET)

        scene.clock.advance(HOUR)
        first = scene.ledger.reap()
        for _ in range(20):
            scene.clock.advance(HOUR // 12)
            assert scene.ledger.reap().stalled == 0

        assert first == Reaped(seen=1, stalled=1)
        assert len(scene.memory.events.published) == 1

    def test_looks_ever_less_often_at_what_waits_for_days(self, scene):
        """Each look costs reads of rows, and requests to queues and metrics."""
        _, items = scene.batch(3, on_failure=OnFailure.HOLD)
        scene.ledger.mark([Failure(item, "no such customer") for item in items]).whole()

        looks = 0
        for _ in range(6 * 48):  # for six days, every half an hour
            scene.clock.advance(HOUR // 2)
            looks += scene.ledger.reap().seen

        assert 5 <= looks <= 12

    @pytest.mark.parametrize("call", ["events.publish", "batches.tell_stall"])
    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_that_dies_has_told_it_or_tells_it_again_with_the_same_id(self, scene, call, moment):
        batch = scene.waiting(QUIET)
        scene.clock.advance(HOUR)

        scene.refuse(call, moment, Crash())
        with pytest.raises(Crash):
            scene.ledger.reap()
        Services(scene.ports).ledger.reap()

        row = scene.row(batch)
        assert row.stall_told == row.touched_at
        told = {event.id for event in scene.memory.events.published}
        assert told == {f"{batch.batch_id}.stalled.{row.touched_at}"}

    def test_looks_again_at_what_waits_for_a_good_reason(self, scene):
        scene.waiting(BUSY)
        scene.clock.advance(HOUR)
        assert scene.ledger.reap() == Reaped(seen=1)
        assert scene.ledger.reap() == Reaped()

        scene.report(QUIET)
        scene.clock.advance(HOUR)

        assert scene.ledger.reap() == Reaped(seen=1, stalled=1)


NOW = 1_790_000_000_000
BATCH = Batch(7, b"s" * 16, NOW, NOW, 0, 7_200, 604_800, items=100)
URL = "https://sqs/1/work"
FACTS = Facts(BATCH, NOW, 0, 100, missing=(MissingRange(0, 10, ""),), sent=(SentRow(URL, 0, 10, NOW, NOW),))


NO_MESSAGE = "no queue that could be looked at shows a message for them"


def known(facts: Facts) -> tuple[Known, str]:
    (one,) = known_ranges(facts)
    return one.known, one.detail


@pytest.mark.parametrize(
    ("counts", "state", "detail"),
    [
        ((1, 0, 0), Known.WAITING, "probably in the queue work"),
        ((0, 0, 1), Known.WAITING, "probably in the queue work"),
        ((1, 1, 0), Known.WAITING, "probably in the queue work"),
        ((0, 1, 0), Known.IN_FLIGHT, "probably received from the queue work and not finished"),
        ((0, 0, 0), Known.UNKNOWN, NO_MESSAGE),
    ],
)
def test_what_was_sent_is_where_its_queue_shows_messages(counts, state, detail):
    report = QueueReport(URL, figures=Figures(*counts, retention=60))

    assert known(replace(FACTS, queues=(report,))) == (state, detail)


def test_a_queue_that_could_not_be_looked_at_says_nothing_and_the_next_one_may():
    # Given items that were sent to two queues, of which one cannot be looked at, and a queue of others
    blind = QueueReport(URL, unseen=("its figures (AccessDenied)",))
    figures = Figures(0, 1, 0, retention=60)
    second, others = "https://sqs/1/second", "https://sqs/1/others"
    sent = (*FACTS.sent, SentRow(second, 0, 10, NOW, NOW), SentRow(others, 10, 20, NOW, NOW))
    facts = replace(FACTS, sent=sent, queues=(blind, QueueReport(others, figures=figures)))

    assert known(facts) == (Known.UNKNOWN, NO_MESSAGE)
    assert known(replace(facts, queues=(blind, QueueReport(second, figures=figures)))) == (
        Known.IN_FLIGHT,
        "probably received from the queue second and not finished",
    )


def test_without_a_note_it_is_unsent_only_beside_notes_of_others():
    others = (SentRow(URL, 10, 20, NOW, NOW),)

    assert known(replace(FACTS, sent=others)) == (Known.NEVER_SENT, "no note says that these items were sent")
    assert known(replace(FACTS, sent=others, sent_more=True)) == (Known.UNKNOWN, NO_MESSAGE)
    assert known(replace(FACTS, sent=())) == (Known.UNKNOWN, "no note says whether they were sent")


@pytest.mark.parametrize(("at", "inside"), [(9, False), (10, True), (19, True), (20, False)])
def test_attempts_and_children_count_for_the_range_of_their_item(at, inside):
    facts = replace(FACTS, missing=(MissingRange(10, 20, ""),), sent=())
    tried = replace(facts, retries={at: RetryRow(at, 2, "no such customer", "", NOW)})
    child = replace(facts, children={at: replace(BATCH, batch_id=8)})

    unknown = (Known.UNKNOWN, "no note says whether they were sent")
    attempt = f"attempt 2 at item {at} failed: no such customer"
    assert known(tried) == ((Known.RETRYING, attempt) if inside else unknown)
    work = f"batch 8 does the work of item {at}"
    assert known(child) == ((Known.CHILD_RUNNING, work) if inside else unknown)


def test_of_several_reasons_the_one_that_says_most_is_told():
    # Given items that are held, one of which was tried again and has a child that does its work
    everything = replace(
        FACTS,
        retries={0: RetryRow(0, 2, "no such customer", "", NOW)},
        children={0: replace(BATCH, batch_id=8)},
        held={0: "no price"},
    )

    assert known(everything)[0] is Known.RETRYING
    assert known(replace(everything, retries={}))[0] is Known.CHILD_RUNNING
    assert known(replace(everything, retries={}, children={})) == (Known.HELD, "failed, and held: no price")


def test_where_others_may_be_held_nothing_is_said_of_a_range():
    assert known(replace(FACTS, held={99: "no"}, held_more=True)) == (
        Known.UNKNOWN,
        "failed items of this batch are held; these may be among them",
    )


def test_of_a_batch_that_has_ended_nothing_is_looked_up():
    retries = {0: RetryRow(0, 2, "no such customer", "", NOW)}
    ended = replace(FACTS, batch=replace(BATCH, state=State.CANCELLED), retries=retries)

    assert known(ended) == (Known.UNKNOWN, "not done when the batch ended")


def test_the_latest_attempt_at_a_range_is_told():
    retries = {
        2: RetryRow(2, 9, "no price", "", NOW - 2),
        3: RetryRow(3, 2, "no such customer", "", NOW - 1),
        4: RetryRow(4, 3, "no name", "", NOW - 3),
    }

    assert known(replace(FACTS, retries=retries))[1] == "attempt 2 at item 3 failed: no such customer"


def test_counts_that_the_index_cannot_show_in_one_read_say_so(monkeypatch):
    service = InMemoryService()
    more = {Trouble.STALLED: (80_000, True), Trouble.FAILED: (2, False)}
    monkeypatch.setattr(service._runtime.memory.batches, "count_flagged", lambda: more)
    for _ in range(2):
        with service.tracker.batch() as batch:
            service.tracker.fail(batch.add(1)[0], "no price")

    found = service.tracker.attention(limit=1)

    assert (found.counts, found.at_least) == ({"stalled": 80_000, "failed": 2}, ("stalled",))
