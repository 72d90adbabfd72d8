"""What became of work: finished, pending, dropped by the service, or of a batch that is gone."""

from __future__ import annotations

import pytest

from fanin.app.buffers.slots import LOST, WorkState, WorkStates
from fanin.domain.marks import Failure, GivenUp
from tests.unit.app.conftest import World

FINISHED, PENDING, DROPPED, UNKNOWN = WorkState


@pytest.fixture
def states(world: World) -> WorkStates:
    return WorkStates(world.ports, world.fresh())


@pytest.mark.parametrize(("failure", "state"), [(Failure, FINISHED), (GivenUp, DROPPED)])
def test_failed_work_is_finished_unless_the_service_gave_it_up(
    world: World, states: WorkStates, failure: type[Failure], state: WorkState
) -> None:
    _, (group,) = world.batch(3)
    world.ledger.mark([failure(group[1], LOST)]).whole()
    world.ledger.mark([group[2]]).whole()

    assert list(states.of(group).values()) == [PENDING, state, FINISHED]


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
