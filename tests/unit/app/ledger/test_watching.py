"""What is told of a batch before its end: noted once on its row, and at no cost to plain acknowledgements."""

import pytest

from fanin.app.ledger import watching
from fanin.app.ledger.reading import Inspected, Reading
from fanin.app.ledger.watching import LOOKS
from fanin.app.ports.parts import Redriven
from fanin.domain.batch import Batch, Cause, ChangeLimits, CloseWhen, Kind, Mode, OnFailure, OpenBatch, State
from fanin.domain.failures import Tolerance
from fanin.domain.marks import Failure, Receipt
from fanin.domain.targets import Target, TargetType, When
from fanin.errors import InvalidRequest, Throttled
from tests.unit.app.conftest import World


def calls(when: When) -> Target:
    return Target(TargetType.DURABLE_CALLBACK, when, callback_id="YQ==")


HOLDS = {"on_failure": OnFailure.HOLD}


def told(world: World, batch: Batch) -> list[str]:
    return [one.name for one in world.row(batch).told]


def published(world: World, batch: Batch) -> list[str]:
    """What the notifier publishes of all changes of a batch, by the last parts of the ids."""
    start = len(world.memory.events.published)
    for old, new in [one for one in world.memory.batches.changes if one[1].batch_id == batch.batch_id]:
        world.ledger.follow(old, new)
    return [event.id.partition(".")[2] for event in world.memory.events.published[start:]]


class TestFailing:
    def test_the_first_failure_is_told_once_at_one_write(self, world):
        batch, (group,) = world.batch(20, closed=True)
        with world.costing(writes=3):  # the note, the word, and the row
            world.fail(group[0])
        assert told(world, batch) == ["failing"]

        with world.costing(writes=2):
            world.fail(group[1])
        assert published(world, batch) == ["failing"]

    def test_a_failure_of_an_item_that_is_done_is_none(self, world):
        batch, (group,) = world.batch(20, closed=True)
        world.ledger.mark([group[0]]).whole()
        world.fail(group[0])
        assert told(world, batch) == []

    def test_the_repeat_of_a_call_that_died_tells_it(self, world):
        batch, (group,) = world.batch(20, closed=True)
        with world.dying("words.clear", "after"):
            world.fail(group[0])
        assert told(world, batch) == []
        assert world.fail(group[0])[0].failed == 0
        assert told(world, batch) == ["failing"]

    def test_a_batch_that_fails_at_its_last_item_tells_it_right_before_its_end(self, world):
        batch, (group,) = world.batch(3, closed=True)
        world.ledger.mark(list(group[0:2])).whole()
        world.fail(group[2])
        assert told(world, batch) == []
        assert published(world, batch) == ["failing", "complete"]

    def test_a_row_that_cannot_be_written_fails_no_mark(self, world):
        batch, (group,) = world.batch(20, closed=True)
        world.raise_at("batches.tell", "before", Throttled("busy", retry_after=1))
        assert world.fail(group[0])[0].failed == 1
        world.ledger.cancel(batch.batch_id)
        assert published(world, batch) == ["failing", "cancelled"]

    def test_a_bus_that_was_down_until_the_end_hears_of_the_end_alone(self, world):
        batch, (group,) = world.batch(20, closed=True)
        before = world.row(batch)
        world.fail(group[0])
        after = world.row(batch)
        world.ledger.tell(before, after, again=True)
        world.ledger.cancel(batch.batch_id)
        world.ledger.tell(before, after, again=True)
        assert [event.detail_type for event in world.memory.events.published] == ["Batch Failing"]

    def test_patterns_tell_of_themselves(self, world):
        batch, (group,) = world.batch(20, kind=Kind.FRAME)
        world.fail(group[0])
        assert (told(world, batch), world.row(batch).attention) == ([], "failing")


class TestWaiting:
    def test_the_last_failure_tells_it_at_once(self, world):
        batch, (group,) = world.batch(9, closed=True, **HOLDS)
        world.fail(group[1])
        world.ledger.mark([group[0], *group[2:8]]).whole()
        assert told(world, batch) == ["failing"]
        world.fail(group[8])
        assert told(world, batch) == ["failing", "waiting"]

    def test_the_reaper_tells_it_where_an_acknowledgement_was_last(self, world):
        batch, (group,) = world.batch(9, closed=True, **HOLDS)
        world.fail(group[0])
        with world.costing(reads=0):
            world.ledger.mark(list(group[1:9])).whole()
        for _ in range(3):
            world.clock.advance(300_000)
            world.ledger.reap()
        assert told(world, batch) == ["failing", "waiting"]

    def test_a_look_that_does_not_see_all_tells_nothing(self, world, monkeypatch):
        monkeypatch.setattr(watching, "WAITS_FAILING", 6)
        batch, (group,) = world.batch(3 * 64, closed=True, **HOLDS)
        for item in group:
            world.fail(item)
        assert told(world, batch) == ["failing"]

    def test_a_batch_that_waits_has_told_that_it_fails(self, world):
        batch, (group,) = world.batch(1, **HOLDS)
        world.raise_at("batches.tell", "before", Throttled("busy", retry_after=1))
        world.fail(group[0])
        world.ledger.close(batch.batch_id)
        assert told(world, batch) == ["failing", "waiting"]

    def test_a_failure_that_nobody_told_of_is_told_at_the_end_if_it_is_held(self, world):
        batch, (group,) = world.batch(20, closed=True, **HOLDS)
        world.raise_at("batches.tell", "before", Throttled("busy", retry_after=1))
        world.fail(group[0])
        world.ledger.cancel(batch.batch_id)
        assert published(world, batch) == ["failing", "cancelled"]

    def test_an_open_batch_may_get_more_items(self, world):
        batch, (group,) = world.batch(1, **HOLDS)
        world.fail(group[0])
        assert told(world, batch) == ["failing"]
        world.ledger.close(batch.batch_id)
        assert told(world, batch) == ["failing", "waiting"]

    def test_what_an_item_adds_meanwhile_is_waited_for(self, world):
        # Given a batch that drains, in which one item has failed, and another adds and is done meanwhile
        batch, (group,) = world.batch(2, **HOLDS)
        world.ledger.close(batch.batch_id, when=CloseWhen.DRAINED)

        def grow() -> None:
            other = world.fresh()
            other.add(batch.batch_id, 1, item=group[1])
            other.mark([group[1]]).whole()

        world.at("batches.tell", "after", lambda: None)
        world.at("words.read", "before", grow)
        world.fail(group[0])
        # Then it does not wait for the failed one alone
        assert world.happened
        assert told(world, batch) == ["failing"]


class TestProgress:
    @pytest.mark.parametrize("order", ["up", "down", "mixed"])
    def test_each_milestone_is_told_in_time_and_never_early(self, order):
        world = World(width=8)
        batch, (group,) = world.batch(1_000, closed=True, milestones=(25, 50, 90, 100))
        places = list(range(1_000))[:: -1 if order == "down" else 1]
        if order == "mixed":
            places = [n * 617 % 1_000 for n in places]
        seen: dict[int, int] = {}
        with world.costing(writes=3, of="batches.tell"):
            for done, place in enumerate(places, 1):
                world.ledger.mark([group[place]]).whole()
                seen.setdefault(world.row(batch).milestone, done)
        assert [0, *seen][1:] == [0, 25, 50, 90]
        for percent, done in list(seen.items())[1:]:
            assert percent * 10 <= done <= percent * 10 + 2 * 1_000 // LOOKS
        assert published(world, batch) == [
            "progress.25",
            "progress.50",
            "progress.90",
            "progress.100",
            "complete",
        ]

    def test_other_acknowledgements_read_nothing(self, world):
        batch, (group,) = world.batch(640, closed=True, milestones=(50,))
        with world.costing(reads=0):
            world.ledger.mark(list(group[1 : 640 // LOOKS])).whole()
        world.ledger.mark([group[640 // LOOKS]]).whole()
        assert world.accesses.reads["words.read"] > 0
        assert told(world, batch) == []

    def test_what_is_not_affordable_to_read_counts_as_pending(self, monkeypatch):
        world = World(width=4)
        monkeypatch.setattr("fanin.app.ledger.watching.COUNTED", 5)
        batch, (group,) = world.batch(256, closed=True, milestones=(10, 50, 90))
        world.ledger.mark([group[n] for n in range(256) if n % 4]).whole()  # no word is whole: all is pending
        assert told(world, batch) == []
        world.ledger.mark([group[n] for n in range(0, 192, 4)]).whole()
        assert told(world, batch) == ["progress.10", "progress.50"]

    def test_the_close_tells_what_was_done_before(self, world):
        batch, (group,) = world.batch(10, milestones=(50, 90))
        world.ledger.mark(list(group[0:6])).whole()
        assert told(world, batch) == []
        world.ledger.close(batch.batch_id)
        assert told(world, batch) == ["progress.50"]

    def test_an_estimated_batch_takes_none(self, world):
        with pytest.raises(InvalidRequest, match="an estimated batch takes no milestones"):
            world.batch(10, milestones=(50,), mode=Mode.ESTIMATED)

    def test_a_process_that_does_not_know_of_a_change_tells_none_of_those_before(self, world):
        # Given a process with a row from before the milestones were changed
        batch, (group,) = world.batch(100, closed=True, milestones=(50, 90))
        other = world.fresh()
        other.mark([group[99]]).whole()
        world.ledger.mark(list(group[0:60])).whole()
        world.ledger.change(batch.batch_id, ChangeLimits(milestones=[50, 99]))
        # When it passes one of the old ones, and a new one is given below that
        other.mark(list(group[60:95])).whole()
        world.ledger.change(batch.batch_id, ChangeLimits(milestones=[50, 80, 99]))
        world.ledger.mark(list(group[95:99])).whole()
        # Then the new one is told, too
        assert published(world, batch) == ["progress.50", "progress.80", "progress.99", "complete"]

    def test_words_that_a_job_clears_count(self, world):
        batch, _ = world.batch(64, closed=True, milestones=(50,))
        world.ledger.clear({batch.batch_id: list(world.ports.tree.cover(0, 40, 64))})
        assert told(world, batch) == ["progress.50"]

    def test_milestones_of_a_live_batch_change(self, world):
        batch, (group,) = world.batch(10, closed=True, milestones=(50,))
        world.ledger.mark(list(group[0:6])).whole()
        changed = world.ledger.change(batch.batch_id, ChangeLimits(milestones=[80, 20, 60]))
        assert changed.milestones == (20, 60, 80)
        assert told(world, batch) == ["progress.20", "progress.60"]
        assert published(world, batch) == ["progress.50", "progress.60"]
        assert world.ledger.change(batch.batch_id, ChangeLimits(milestones=())).milestones == ()

    def test_a_part_of_a_batch_that_timed_out_is_all_that_is_told(self, world):
        batch, (group,) = world.batch(10, closed=True, milestones=(50, 90))
        world.ledger.mark(list(group[0:5])).whole()
        world.ledger.cancel(batch.batch_id)
        assert published(world, batch) == ["progress.50", "cancelled"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"milestones": [0]}, "a milestone"),
        ({"milestones": [101]}, "a milestone"),
        ({"milestones": range(1, 12)}, "up to 10"),
        ({"milestones": [50], "kind": Kind.BUFFER}, "plain batches"),
        ({"on_end": [calls(When.PROGRESS)]}, "needs milestones"),
        ({"on_end": [calls(When.WAITING)]}, "needs on_failure"),
        ({"on_end": [calls(When.FAILING)], "kind": Kind.SCATTER}, "plain"),
    ],
)
def test_what_would_never_be_told_is_refused(world, options, match):
    with world.refusing(InvalidRequest, match):
        world.ledger.open(OpenBatch(**options))


# A batch in which too much fails is cancelled, with a cause; one within its tolerance never is.


def fail(world: World, *items: str) -> Receipt:
    (receipt,) = world.ledger.mark([Failure(item, "no") for item in items]).whole()
    return receipt


def test_beyond_the_count_the_batch_is_cancelled(world):
    # Given a batch that tolerates three
    batch, (group,) = world.batch(20, closed=True, tolerated_failures=Tolerance(count=3))

    assert fail(world, *group[0:3]).state is State.CLOSED
    # Then the fourth ends it, and the event says why
    receipt = fail(world, group[3])
    row = world.row(batch)
    assert (receipt.state, receipt.first) == (State.CANCELLED, 1)
    assert (row.state, row.cause) == (State.CANCELLED, Cause.FAILURES)
    world.ledger.announce(row)
    detail = world.memory.events.published[-1].detail
    assert (detail["cause"], detail["failed"]) == ("failures", 4)


def test_a_cancel_that_was_asked_for_has_no_cause(world):
    batch, _ = world.batch(1, tolerated_failures=Tolerance(count=0))
    assert world.ledger.cancel(batch.batch_id).cause is None


def test_a_share_of_what_is_done(world):
    batch, (group,) = world.batch(64, tolerated_failures=Tolerance(percent=25, min_sample=8))
    assert fail(world, *group[0:7]).state is State.OPEN  # all of 7, and 8 must be done
    world.ledger.mark(list(group[7:31])).whole()
    assert fail(world, group[31]).state is State.OPEN  # 8 of 32
    assert fail(world, group[32]).state is State.CANCELLED  # 9 of 33
    assert world.row(batch).cause is Cause.FAILURES


def test_repeats_of_a_failure_do_not_count(world):
    batch, (group,) = world.batch(20, tolerated_failures=Tolerance(count=2))
    for _ in range(5):
        fail(world, group[0], group[1])

    assert world.row(batch).state is State.OPEN
    assert world.row(batch).failing == 2


def test_what_failed_before_the_rest_of_a_call_was_throttled_counts(world):
    batch, (group,) = world.batch(20, closed=True, tolerated_failures=Tolerance(count=1))
    world.raise_at("words.clear", "before", Throttled("busy"), after=2)

    with pytest.raises(Throttled):
        fail(world, group[0], group[4], group[8])

    assert world.row(batch).cause is Cause.FAILURES


def test_a_hint_that_is_too_high_decides_nothing(world):
    batch, (group,) = world.batch(20, tolerated_failures=Tolerance(count=2))
    world.ports.batches.hint_failures(batch.batch_id, 1_000)

    assert fail(world, group[0]).state is State.OPEN
    assert fail(world, group[1]).state is State.OPEN
    assert fail(world, group[2]).state is State.CANCELLED


def test_a_hint_that_was_lost_delays(world):
    # Given a request whose hint is not written
    batch, (group,) = world.batch(20, closed=True, tolerated_failures=Tolerance(count=2))

    world.raise_at("batches.hint_failures", "before", Throttled("busy"))
    assert fail(world, *group[0:9]).first == 9
    assert world.row(batch).state is State.CLOSED

    world.clock.advance(16 * 60_000)
    reaped = world.ledger.reap()

    assert (reaped.cancelled, world.row(batch).cause) == (1, Cause.FAILURES)


def test_the_close_looks_too(world):
    batch, (group,) = world.batch(40, tolerated_failures=Tolerance(percent=10, min_sample=20))
    fail(world, *group[0:10])
    world.ledger.mark(list(group[10:20])).whole()

    assert world.ledger.close(batch.batch_id).cause is Cause.FAILURES


def test_held_items_count_and_released_ones_count_once(world):
    batch, (group,) = world.batch(20, on_failure=OnFailure.HOLD, tolerated_failures=Tolerance(count=3))
    assert fail(world, group[0], group[1]).held == 2
    world.ledger.release(batch.batch_id)
    assert fail(world, group[2]).state is State.OPEN
    assert fail(world, group[3]).state is State.CANCELLED


def test_items_that_are_redriven_while_it_counts_do_not_end_it(world):
    # Given a batch of which as much failed as it tolerates: 10 of 20
    batch, (group,) = world.batch(
        40, on_failure=OnFailure.HOLD, tolerated_failures=Tolerance(percent=50, min_sample=10)
    )
    world.ledger.mark(list(group[0:10])).whole()
    assert fail(world, *group[10:20]).state is State.OPEN
    notes, _ = world.ports.parts.failures(batch.batch_id)
    taken = {note.ordinal: note.failed_at for note in notes}
    # When a redrive takes them, after they were counted as failures and before as done
    for _ in taken:
        world.at("parts.redriven", "after", lambda: None)
    world.at(
        "words.read",
        "before",
        lambda: world.ports.parts.mark_redriven(
            batch.batch_id, {n: Redriven("r", at) for n, at in taken.items()}, {}, expires_at=batch.expires_at
        ),
    )
    row = world.ledger.close(batch.batch_id)

    assert world.happened
    assert (row.state, row.cause) == (State.CLOSED, None)


def test_a_held_item_that_is_done_while_it_counts_is_one_item_of_the_sample(world):
    # Given a batch of which one item is missing for the share of failures to say something
    batch, (group,) = world.batch(
        40, on_failure=OnFailure.HOLD, tolerated_failures=Tolerance(percent=10, min_sample=10)
    )
    world.ledger.mark(list(group[0:5])).whole()
    assert fail(world, *group[5:9]).state is State.OPEN
    # When a held item is acknowledged after it was counted as held, and before as done
    for _ in group[5:9]:
        world.at("parts.redriven", "after", lambda: None)
    world.at("words.read", "before", lambda: world.fresh().mark([group[5]]).whole())
    row = world.ledger.close(batch.batch_id)

    assert world.happened
    assert (row.state, row.cause) == (State.CLOSED, None)
    # And a tenth one that fails ends it: what is held is part of what is done
    assert fail(world, group[9]).state is State.CANCELLED


def test_a_batch_that_may_be_complete_is_not_given_up(world, monkeypatch):
    _, (group,) = world.batch(20, tolerated_failures=Tolerance(count=2))
    uncertain = lambda _ledger, row: Inspected(row, certain=False)  # noqa: E731
    monkeypatch.setattr(Reading, "inspect", uncertain)
    assert fail(world, *group[0:9]).state is State.OPEN

    monkeypatch.undo()
    assert fail(world, group[9]).state is State.CANCELLED


def test_a_batch_of_which_all_is_done_completes_whatever_failed(world):
    batch, (group,) = world.batch(3, closed=True, tolerated_failures=Tolerance(count=0))

    assert fail(world, *group).state is State.COMPLETE
    assert (world.row(batch).cause, world.row(batch).failed) == (None, 3)


def test_costs_one_write_a_failing_request_where_it_is_set_and_else_none(world):
    def writes(tolerance: Tolerance | None) -> int:
        _, (group,) = world.batch(20, tolerated_failures=tolerance)
        before = world.written()
        fail(world, *group[0:5])
        return world.written() - before

    assert writes(Tolerance(count=9)) == writes(None) + 1


def test_what_cannot_be_counted_is_refused(world):
    with pytest.raises(InvalidRequest, match="open the batch in exact mode"):
        world.ledger.open(OpenBatch(mode=Mode.ESTIMATED, tolerated_failures=Tolerance(count=1)))
    with pytest.raises(InvalidRequest, match="needs a count"):
        world.ledger.open(OpenBatch(tolerated_failures=Tolerance()))
