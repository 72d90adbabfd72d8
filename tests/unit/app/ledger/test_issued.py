"""Only blocks that the service gave, of items that are there, pass."""

from __future__ import annotations

import pytest

from fanin.app.ledger.issued import check_issued
from fanin.domain import ids
from fanin.domain.batch import Batch
from fanin.errors import InvalidItemId
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
    with pytest.raises(InvalidItemId, match="nothing was done"):
        check_issued(ids.issue(batch.batch_id, 0, 8, bytes(16)), batch)
