"""Receipts: what they say, that they are opaque text, and what is refused as one."""

from __future__ import annotations

import base64
import json
import re

import pytest

from fanin.app.buffers import receipts
from fanin.app.buffers.receipts import Ordinal, Receipt
from fanin.domain import ids
from fanin.errors import InvalidRequest

ITEM = f"{ids.issue(7, 100, 3, b'salt').prefix}:2"
"""The third of three items that begin at ordinal 100."""
FIRST = f"{ids.issue(0, 0, 1, b'salt').prefix}:0"
"""The first of the first batch."""
LONGEST = 4_096


def packed(value: object) -> str:
    """Text in the form of a receipt."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("handle", ["delivery-1", "", "AQEB+/==", "a b\n", "☂", "h" * 1_024])
def test_a_receipt_reads_back_as_it_was_written(handle: str) -> None:
    assert receipts.read(receipts.write(ITEM, handle)) == Receipt(7, ITEM, handle)
    assert receipts.read(receipts.write(FIRST, handle)) == Receipt(0, FIRST, handle)


@pytest.mark.parametrize("padding", range(4))
def test_a_receipt_is_text_for_urls_whatever_its_length(padding: int) -> None:
    # These letters give both characters in which the alphabet for URLs differs from the usual one
    handle = "~~~???>>>" * 3 + "x" * padding

    token = receipts.write(ITEM, handle)

    assert re.fullmatch("[A-Za-z0-9_-]+", token)
    assert receipts.read(token).handle == handle


def test_a_receipt_is_read_up_to_its_greatest_length_and_no_further() -> None:
    handle = "h" * (LONGEST * 3 // 4 - len(json.dumps([ITEM, ""])))

    longest, longer = receipts.write(ITEM, handle), receipts.write(ITEM, handle + "h")

    assert len(longest) == LONGEST < len(longer)
    assert receipts.read(longest).handle == handle
    with pytest.raises(InvalidRequest):
        receipts.read(longer)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "nonsense",
        "☂",
        "W10 ",
        packed([]),
        packed("text"),
        packed(7),
        packed({"item": ITEM, "handle": "h"}),
        packed([ITEM]),
        packed([ITEM, "h", "more"]),
        packed([ITEM, 1]),
        packed([ITEM, None]),
        packed([7, "h"]),
        packed(["no item", "h"]),
        packed([ITEM[:-1] + "3", "h"]),  # the group has three items, so the last index is 2
        packed([ITEM, "h"])[:-2],
        base64.urlsafe_b64encode(b"\xff\xfe").decode().rstrip("="),
        base64.urlsafe_b64encode(b"[" * 3_000).decode().rstrip("="),
    ],
)
def test_other_text_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequest):
        receipts.read(token)


def test_the_refusal_quotes_the_beginning_only() -> None:
    with pytest.raises(InvalidRequest) as refused:
        receipts.read("x" * 31 + "yz" + "z" * 10_000)

    assert f"'{'x' * 31}y'" in str(refused.value)


def test_whether_the_item_was_issued_is_left_to_the_ledger() -> None:
    forged = ITEM.replace(ITEM.split(":")[1][-4:], "0000")
    assert forged != ITEM

    assert receipts.read(receipts.write(forged, "h")).item == forged


def test_an_item_stands_at_an_ordinal_of_its_batch() -> None:
    assert receipts.ordinal(ITEM) == Ordinal(batch_id=7, number=102)


@pytest.mark.parametrize("text", ["", "7", "7:2", "no item", ITEM[:-2], ITEM[:-1] + "3", ITEM + "0", "☂:☂:0"])
def test_text_that_is_not_an_item_id_stands_nowhere(text: str) -> None:
    assert receipts.ordinal(text) is None
