"""What became of work: finished, pending, dropped by the service, or of a batch that is gone."""

from __future__ import annotations

import pytest

from fanin.app.buffers.work_states import LOST, WorkState, WorkStates
from fanin.domain.marks import Failure, GivenUp
from tests.unit.app.conftest import World

FINISHED, PENDING, DROPPED, UNKNOWN = WorkState


@pytest.fixture
def states(world: World) -> WorkStates:
    return WorkStates(world.ports, world.fresh())


def test_nothing_is_asked_for_no_items(world: World, states: WorkStates) -> None:
    assert states.of([]) == {}
    assert world.accesses.reads.total() == 0


@pytest.mark.parametrize(("failure", "state"), [(Failure, FINISHED), (GivenUp, DROPPED)])
def test_failed_work_is_finished_unless_the_service_gave_it_up(
    world: World, states: WorkStates, failure: type[Failure], state: WorkState
) -> None:
    _, (group,) = world.batch(3)
    world.ledger.mark([failure(group[1], LOST)]).whole()
    world.ledger.mark([group[2]]).whole()

    assert list(states.of(group).values()) == [PENDING, state, FINISHED]


@pytest.mark.parametrize("call", ["parts.put_failures", "words.clear"])
@pytest.mark.parametrize("first", [Failure, GivenUp])
def test_work_that_a_consumer_fails_while_it_is_given_up_is_finished(
    world: World, states: WorkStates, call: str, first: type[Failure]
) -> None:
    _, (group,) = world.batch(1)
    other = GivenUp if first is Failure else Failure
    world.at(call, "before", lambda: world.fresh().mark([other(group[0], "other")]).whole())

    world.ledger.mark([first(group[0], "first")]).whole()

    assert states.of(group) == {group[0]: FINISHED}


def test_work_that_was_done_before_it_was_given_up_is_finished(world: World, states: WorkStates) -> None:
    _, (group,) = world.batch(1)
    world.ledger.mark(group).whole()
    world.ledger.mark([GivenUp(group[0], LOST)]).whole()

    assert states.of(group) == {group[0]: FINISHED}


def test_work_of_several_batches_is_told_apart(world: World, states: WorkStates) -> None:
    # Given items of a live batch, of one that was cancelled, and of one that is gone, in no order
    _, (live,) = world.batch(70)
    cancelled, (dropped,) = world.batch(2)
    gone, (unknown,) = world.batch(1)
    world.ledger.mark([live[66], dropped[1]]).whole()
    world.ledger.cancel(cancelled.batch_id)
    del world.memory.batches._rows[gone.batch_id]

    asked = [live[65], dropped[0], live[66], unknown[0], dropped[1]]
    assert list(states.of(asked).values()) == [PENDING, DROPPED, FINISHED, UNKNOWN, FINISHED]
