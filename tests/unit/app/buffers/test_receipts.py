"""Receipts of work: opaque to callers, and checked when they come back."""

from __future__ import annotations

import base64
import json

import pytest

from fanin.app.buffers import receipts
from fanin.app.buffers.receipts import Ordinal, Receipt
from fanin.domain import ids
from fanin.errors import (
    InvalidItemId,
    InvalidRequest,
)
from tests.unit.app.buffers.conftest import World

BLOCK = ids.issue(7, 100, 50, bytes(16))
ITEM = f"{BLOCK.prefix}:3"


def packed(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("handle", ["AQEB+/==", "h" * 1_024, "\u2602"])
def test_a_receipt_reads_back(handle: str) -> None:
    assert receipts.read(receipts.write(ITEM, handle)) == Receipt(7, ITEM, handle)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "nonsense",
        "ä",
        packed([ITEM]),
        packed([ITEM, "h", "more"]),
        packed([ITEM, 5]),
        packed([5, "h"]),
        packed(["no item", "h"]),
        packed([f"{BLOCK.prefix}:50", "h"]),
        packed("ab"),
        packed(7),
        receipts.write(ITEM, "h" * 4_096),
    ],
)
def test_anything_else_is_refused_and_says_what_to_do(token: str) -> None:
    with pytest.raises(InvalidRequest, match="nothing was done; send receipts exactly as you got them"):
        receipts.read(token)


def test_the_place_of_an_item_is_its_batch_and_ordinal() -> None:
    assert receipts.ordinal(ITEM) == Ordinal(7, 103)
    assert receipts.ordinal("no item") is None
    assert receipts.ordinal("") is None


def test_a_forged_receipt_frees_no_slot(world: World) -> None:
    (item,) = world.buffers.put("jobs", ["a"]).items
    group = item.split(":")[1]
    forged = receipts.write(item.replace(group, group[:-4] + "0000"), "delivery-1")

    with pytest.raises(InvalidItemId):
        world.buffers.done("jobs", [forged])
    assert world.buffers.status("jobs").pending == 1
