"""Receipts of work: opaque to callers, and checked when they come back."""

from __future__ import annotations

import pytest

from fanin.errors import (
    InvalidItemId,
)
from tests.unit.app.buffers.conftest import World


def test_a_forged_receipt_frees_no_slot(world: World) -> None:
    from fanin.app.buffers import receipts

    (item,) = world.buffers.put("jobs", ["a"]).items
    group = item.split(":")[1]
    forged = receipts.write(item.replace(group, group[:-4] + "0000"), "delivery-1")

    with pytest.raises(InvalidItemId):
        world.buffers.done("jobs", [forged])
    assert world.buffers.status("jobs").pending == 1
