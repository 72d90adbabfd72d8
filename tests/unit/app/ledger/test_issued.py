"""Only blocks that the service gave, of items that are there, pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.issued import check_issued
from fanin.app.ledger.service import LedgerService
from fanin.domain import ids
from fanin.domain.batch import Batch, OpenBatch
from fanin.domain.marks import Failure
from fanin.errors import BatchNotFound, InvalidItemId
from tests.unit.app.conftest import World


@pytest.fixture
def batch(world: World) -> Batch:
    """A batch of eight items."""
    batch, _ = world.batch(8)
    return world.row(batch)


def test_a_block_up_to_the_last_item_passes(batch: Batch) -> None:
    check_issued(ids.issue(batch.batch_id, 5, 3, batch.salt), batch)


@pytest.mark.parametrize("first", [6, 8, 2**40 - 1])
def test_a_block_past_the_last_item_is_refused_though_its_check_is_right(batch: Batch, first: int) -> None:
    block = ids.issue(batch.batch_id, first, 3, batch.salt)

    with pytest.raises(InvalidItemId, match=f"group {block.prefix} was not issued"):
        check_issued(block, batch)


def test_a_block_under_another_salt_is_refused(batch: Batch) -> None:
    with pytest.raises(InvalidItemId, match="was not issued by this service"):
        check_issued(ids.issue(batch.batch_id, 0, 8, bytes(16)), batch)


@pytest.mark.parametrize("same_id", [True, False])
def test_an_item_id_of_another_deployment_is_unknown(*, same_id: bool) -> None:
    # Given two deployments, and an item of one whose batch id the other has, or has not
    theirs, ours = Memory(), Memory()
    ledger = LedgerService(theirs.ports())
    opened = ledger.open(OpenBatch())
    group = ledger.add(opened.batch_id, 3)
    if same_id:
        assert ours.batches.create(replace(opened, salt=bytes(16), items=3)) is not None
    # When it is acknowledged or failed at the other
    here = LedgerService(ours.ports())
    for call in (
        lambda: here.mark([group[0]]).whole(),
        lambda: here.mark([Failure(group[0], "why")]).whole(),
    ):
        with pytest.raises(InvalidItemId if same_id else BatchNotFound):
            call()
    # Then nothing is marked there
    assert not ours.accesses.writes["words.clear"]
    assert ledger.mark([group[0]]).whole()[0].first == 1
