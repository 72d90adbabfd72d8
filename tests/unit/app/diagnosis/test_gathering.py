from dataclasses import replace

import pytest

from fanin.app.diagnosis import gathering
from fanin.app.diagnosis.gathering import MOST_READS, Facts, gather
from fanin.app.failures import last_attempts, sent_queues
from fanin.app.ports.parts import Redriven, RetryRow, SentRow
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.batch import Batch, Mode, OnFailure, OpenBatch
from fanin.domain.diagnosis import Retry, SentItems
from fanin.domain.marks import Failure, ItemRange

BILLION = 10**9
REQUESTS = 4
"""To look at one queue."""


@pytest.mark.parametrize("apart", [1, 64, 4_097, 99_999_989])
def test_a_batch_of_a_billion_takes_at_most_a_hundred_reads_and_no_write(scene, apart):
    # Given a batch of 10⁹ items of which a few are done or missing far apart, with notes of everything
    batch, group = scene.batch(BILLION)
    places = [n * apart for n in range(20) if n * apart < BILLION - 1]
    if apart > 64:
        for start, stop in zip([-1, *places], [*places, BILLION], strict=True):
            if stop > start + 1:
                scene.ledger.mark([ItemRange(group.prefix, start + 1, stop)]).whole()
    else:
        scene.ledger.mark([group[place] for place in places]).whole()
    for n in range(100):
        queue = f"https://queue/{n % 5}"
        scene.diagnostics.note_sent(batch.batch_id, SentItems(queue, n * 1_000, BILLION - n))
    scene.diagnostics.note_retries([Retry(group[n], 2, "no") for n in range(1_000)])
    for n in range(6):
        scene.ledger.open(OpenBatch(parent_item=group[places[n] + (apart <= 64)]))
    before, writes = scene.accesses.reads.total(), scene.accesses.writes.copy()
    looks = scene.accesses.sends["inspection.look"]
    # When it is asked why it is not finished
    scene.diagnostics.why(batch.batch_id)
    # Then that takes at most 100 reads, each row of a listing and request to a queue counted, and no write
    reads = scene.accesses.reads.total() - before
    rows = gathering.SENT - 1 + gathering.RETRIES - 1
    requests = REQUESTS * (scene.accesses.sends["inspection.look"] - looks)
    assert 0 < requests <= REQUESTS * gathering.QUEUES
    assert reads + rows + requests <= MOST_READS == 100
    assert scene.accesses.writes == writes


def test_a_small_batch_is_known_exactly(scene):
    batch, group = scene.batch(200)
    scene.ledger.mark([ItemRange(group.prefix, 10, 150)]).whole()
    scene.ledger.mark([Failure(group[199], "no")]).whole()

    facts = scene.facts(batch)

    assert (facts.done_min, facts.done_max, facts.begun, facts.missing_more) == (141, 141, True, False)
    assert [(one.start, one.stop) for one in facts.missing] == [(0, 10), (150, 199)]
    assert (facts.batch.failed, facts.batch.failed_more) == (1, True)  # a range may have passed over others


def test_where_no_range_was_marked_failures_are_counted(scene):
    batch, group = scene.batch(200)
    scene.ledger.mark([Failure(group[50 * n], "no") for n in range(3)]).whole()
    scene.ledger.mark([group[199]]).whole()

    facts = scene.facts(batch)

    assert (facts.batch.failed, facts.batch.failed_more) == (3, False)


@pytest.mark.parametrize("items", [0, 1, 2])
def test_of_the_smallest_batches_each_item_is_missing(scene, items):
    batch = scene.ledger.open(OpenBatch())
    if items:
        scene.ledger.add(batch.batch_id, items)

    facts = scene.facts(batch)

    assert (facts.done_min, facts.done_max, facts.begun, facts.missing_more) == (0, 0, False, False)
    assert [(one.start, one.stop) for one in facts.missing] == ([(0, items)] if items else [])


@pytest.mark.parametrize(("ranges", "more"), [(10, False), (11, True)])
def test_the_first_ten_ranges_are_told(scene, ranges, more):
    batch, group = scene.batch(64)
    scene.ledger.mark([group[n] for n in range(64) if n % 2 or n >= 2 * ranges]).whole()

    facts = scene.facts(batch)

    assert [one.start for one in facts.missing] == [2 * n for n in range(min(ranges, 10))]
    assert facts.missing_more is more
    assert facts.done_max == 64 - ranges


@pytest.mark.parametrize("end", ["cancel", "ack"])
def test_where_nothing_is_waited_for_neither_notes_nor_queues_are_read(scene, end):
    # Given a batch with a note, that was cancelled, or that is open with all items done
    group = scene.group(3)
    scene.diagnostics.note_sent(group.batch_id, SentItems("q", 0, 3))
    if end == "cancel":
        scene.ledger.cancel(group.batch_id)
    else:
        scene.ledger.mark(group).whole()
    before = scene.accesses.reads.copy()

    facts = gather(scene.ports, scene.memory.batches.read([group.batch_id])[group.batch_id])

    read = set(scene.accesses.reads - before)
    assert not {call for call in read if call.startswith("parts.")}
    assert scene.accesses.sends["inspection.look"] == 0
    assert (facts.sent, facts.queues) == ((), ())
    assert facts.batch.state.terminal is (end == "cancel")


def test_the_queues_of_missing_items_are_looked_at_first(scene):
    # Given items of three queues, of which only those of two are missing
    batch, group = scene.batch(15)
    for n in range(3):
        scene.diagnostics.note_sent(batch.batch_id, SentItems(f"q{n}", 5 * n, 5 * n + 5))
    scene.ledger.mark(group[5:10]).whole()

    assert {report.queue for report in scene.facts(batch).queues} == {"q0", "q2"}


@pytest.mark.parametrize(("start", "read"), [(4, True), (5, False)])
def test_notes_after_the_last_missing_item_are_not_read(scene, start, read):
    batch, group = scene.batch(10)
    row = SentRow("q", start, 10, 0, 0)
    scene.ports.parts.put_sent(batch.batch_id, row, expires_at=batch.expires_at)
    scene.ledger.mark(group[5:]).whole()

    assert scene.facts(batch).sent == ((row,) if read else ())


@pytest.mark.parametrize("mode", [Mode.EXACT, Mode.ESTIMATED])
def test_of_a_batch_that_is_complete_nothing_is_read(scene, mode):
    batch, group = scene.batch(3, mode=mode)
    scene.ledger.mark(group).whole()
    row = scene.row(batch)
    before = scene.accesses.reads.total()

    facts = gather(scene.ports, row)

    assert scene.accesses.reads.total() == before
    assert (facts.done_min, facts.done_max, facts.begun, facts.missing_more) == (3, 3, True, False)


def test_without_a_note_of_missing_items_the_queues_of_others_are_looked_at(scene):
    batch, group = scene.batch(50)
    for n in range(5):
        scene.diagnostics.note_sent(batch.batch_id, SentItems(f"q{n % 4}", n, n + 1))
    scene.ledger.mark(group[:40]).whole()
    # Then that is done once for each queue, the nearest first, and for three at most
    assert [report.queue for report in scene.facts(batch).queues] == ["q0", "q3", "q2"]


def test_children_of_the_first_missing_items_are_looked_for(scene):
    # Given children of all items, of which the first are done
    batch, group = scene.batch(12)
    children = [scene.ledger.open(OpenBatch(parent_item=item)).batch_id for item in group]
    scene.ledger.mark([group[n] for n in (0, 1, 4)]).whole()

    found = scene.facts(batch).children
    # Then those of the first four missing items are known
    assert {at: child.batch_id for at, child in found.items()} == {at: children[at] for at in (2, 3, 5, 6)}
    # And one that has ended does no work any more
    scene.ledger.cancel(children[2])
    assert set(scene.facts(batch).children) == {3, 5, 6}


def test_a_large_batch_is_bounded(scene):
    batch, group = scene.batch(BILLION)
    scene.ledger.mark([ItemRange(group.prefix, 0, BILLION // 2)]).whole()

    facts = scene.facts(batch)

    seen = sum(one.stop - one.start for one in facts.missing)
    assert 0 < facts.done_min <= BILLION // 2 <= facts.done_max == BILLION - seen
    assert facts.missing_more
    assert facts.missing[0].start == BILLION // 2


def test_a_range_of_missing_items_can_be_acknowledged(scene):
    batch, _ = scene.batch(70)

    for one in scene.facts(batch).missing:
        scene.ledger.mark([one.items]).whole()

    assert scene.ledger.status(batch.batch_id).batch.state.terminal


def test_what_died_between_a_word_and_its_parent_is_unsettled(scene):
    # Given a batch in which every word of level 0 is done, and the root does not know it
    batch, _ = scene.batch(128)
    for number in range(2):
        key = WordKey(batch.batch_id, 0, number)
        scene.ports.words.clear([Clear(key, (1 << 64) - 1, batch.expires_at)])

    facts = scene.facts(batch)

    assert facts.all_done
    assert not facts.batch.state.terminal


def test_ranges_are_cut_where_notes_of_sent_items_end(scene):
    batch, _ = scene.batch(50)
    scene.ports.parts.put_sent(batch.batch_id, SentRow("q", 5, 20, 0, 0), expires_at=batch.expires_at)

    facts = scene.facts(batch)

    assert [(one.start, one.stop) for one in facts.missing] == [(0, 5), (5, 20), (20, 50)]


def test_notes_of_attempts_at_items_that_are_done_are_left_out(scene):
    batch, group = scene.batch(10)
    scene.ports.parts.put_retries(
        batch.batch_id, [RetryRow(n, 2, "no", "q", 0) for n in (3, 4)], expires_at=batch.expires_at
    )
    scene.ledger.mark([group[3]]).whole()

    assert set(scene.facts(batch).retries) == {4}


class TestHeld:
    """A batch that was opened to hold its failed items."""

    def test_held_items_are_known_with_their_reasons(self, scene):
        # Given two items that failed, one of which has succeeded since
        batch, group = scene.batch(10, on_failure=OnFailure.HOLD)
        scene.ledger.mark([Failure(group[3], "no price"), Failure(group[4], "no name")]).whole()
        scene.ledger.mark([group[4]]).whole()

        facts = scene.facts(batch)
        # Then the other is held, and is a range of its own
        assert (facts.held, facts.held_more) == ({3: "no price"}, False)
        assert [(one.start, one.stop) for one in facts.missing] == [(0, 3), (3, 4), (5, 10)]
        assert [(one.start, one.stop) for one in facts.not_held] == [(0, 3), (5, 10)]

    def test_what_a_redrive_has_taken_is_not_held(self, scene):
        batch, group = scene.batch(10, on_failure=OnFailure.HOLD)
        scene.ledger.mark([Failure(group[3], "no price")]).whole()
        (note,) = scene.ports.parts.notes(batch.batch_id, [3]).values()

        scene.ports.parts.mark_redriven(
            batch.batch_id, {3: Redriven("again", note.failed_at)}, {}, expires_at=batch.expires_at
        )

        assert scene.facts(batch).held == {}

    def test_more_than_it_looks_at_may_be_held(self, scene):
        batch, group = scene.batch(100, on_failure=OnFailure.HOLD)
        scene.ledger.mark([Failure(group[n], "no") for n in range(50)]).whole()

        facts = scene.facts(batch)

        assert (len(facts.held), facts.held_more, facts.not_held) == (8, True, ())

    def test_an_attempt_before_the_item_was_held_is_over_and_one_after_it_is_told(self, scene):
        batch, group = scene.batch(10, on_failure=OnFailure.HOLD)

        def tried(attempt: int) -> set[int]:
            scene.diagnostics.note_retries([Retry(group[3], attempt, "no")])
            return set(scene.facts(batch).retries)

        assert tried(2) == {3}
        scene.clock.advance(1_000)
        scene.ledger.mark([Failure(group[3], "dead letter: no")]).whole()
        assert scene.facts(batch).retries == {}
        assert tried(3) == set()  # in the same millisecond
        scene.clock.advance(1)
        assert tried(4) == {3}

    def test_it_takes_at_most_a_hundred_reads(self, scene):
        # Given a billion items, of which a thousand far apart are held and were tried before
        batch, group = scene.batch(BILLION, on_failure=OnFailure.HOLD)
        places = [n * 999_983 for n in range(1_000)]
        scene.diagnostics.note_retries([Retry(group[n], 2, "no") for n in places])
        scene.ledger.mark([Failure(group[n], "no") for n in places]).whole()
        for n in range(4):
            scene.diagnostics.note_sent(batch.batch_id, SentItems(f"https://queue/{n}", 0, BILLION))
        before = scene.accesses.reads.total()
        # When it is asked why it is not finished
        scene.diagnostics.why(batch.batch_id)
        # Then each row, each row of a listing and each request to a queue counted, that is within the bound
        rows = gathering.SENT - 1 + gathering.RETRIES - 1 + gathering.HELD - 1
        reads = scene.accesses.reads.total() - before
        assert reads + rows + REQUESTS * gathering.QUEUES <= MOST_READS


@pytest.mark.parametrize("acked", [0, 1, 9])
def test_an_estimated_batch_has_a_count_and_no_ranges_and_has_begun_with_its_first_item(scene, acked):
    batch, group = scene.batch(10, mode=Mode.ESTIMATED)
    if acked:
        scene.ledger.mark(group[:acked]).whole()

    facts = scene.facts(batch)

    assert (facts.done_min, facts.done_max, facts.missing) == (acked, acked, ())
    assert (facts.missing_more, facts.begun) == (True, acked > 0)


def test_a_batch_that_completes_while_it_is_looked_at_has_ended(scene):
    # Given a batch whose last item is marked after its row was read, and before its words are
    batch, group = scene.batch(70)
    scene.ledger.mark(group[:69]).whole()
    row = scene.row(batch)
    scene.ledger.mark([group[69]]).whole()

    facts = gather(scene.ports, row)

    assert facts.batch.state.terminal


WORK, OTHER = "https://sqs/1/work", "arn:aws:sqs:eu-west-1:1:other"


def test_an_item_that_was_sent_to_one_queue_has_it(scene):
    # Given a batch of which three items were sent to one queue, one to another, one to both, and one to none
    group = scene.group(6)
    for row in (SentRow(WORK, 0, 3, 0, 0), SentRow(OTHER, 3, 5, 0, 0), SentRow(WORK, 4, 5, 0, 0)):
        scene.memory.parts.put_sent(group.batch_id, row, expires_at=0)

    found = sent_queues(scene.ports, [*group, "forged", ""])
    assert found == {**dict.fromkeys(group[0:3], WORK), group[3]: OTHER}
    # And notes that cannot be read now are done without
    scene.refuse("parts.sent")
    assert sent_queues(scene.ports, [*group]) == {}


def test_attempts_are_those_of_the_notes_and_bad_ids_have_none(scene):
    first, second = scene.group(3), scene.group(3)
    for group in (first, second):
        row = RetryRow(1, 2, f"error of {group.batch_id}", "work", 0)
        scene.memory.parts.put_retries(group.batch_id, [row], expires_at=0)
    items = [first[0], first[1], second[1], "forged", ""]

    found = last_attempts(scene.ports, items)

    assert {item: (row.error, row.queue) for item, row in found.items()} == {
        first[1]: (f"error of {first.batch_id}", "work"),
        second[1]: (f"error of {second.batch_id}", "work"),
    }
    # And notes of one batch that cannot be read now are done without, and keep those of others
    scene.refuse("parts.retries")
    assert set(last_attempts(scene.ports, items)) == {second[1]}


NOW = 1_790_000_000_000
BATCH = Batch(7, b"s" * 16, NOW, NOW, 0, 7_200, 7_200, items=100, stall_after=400)
"""Its step is 100 seconds."""
STEP = 100_000


@pytest.mark.parametrize(
    ("after", "recent", "quiet"),
    [
        (0, True, False),
        (STEP + 60_000, True, False),
        (STEP + 60_001, False, False),
        (STEP + 399_999, False, False),
        (STEP + 400_000, False, True),
    ],
)
def test_activity_may_have_been_a_step_later_than_the_row_says(after, recent, quiet):
    facts = Facts(BATCH, NOW + after, 0, 100, begun=True)

    assert (facts.recent, facts.quiet) == (recent, quiet)
    assert facts.moving is not quiet
    assert not replace(facts, begun=False).moving


def test_a_batch_that_never_stalls_is_quiet_after_a_tenth_of_its_idle_time():
    batch = replace(BATCH, stall_after=0)

    assert not Facts(batch, NOW + 2 * 720_000 - 1, 0, 100).quiet
    assert Facts(batch, NOW + 2 * 720_000, 0, 100).quiet
