"""Merging pages of several tasks: each item once; the others are rejects."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from fanin.domain.tree import Bits, Tree
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.page_builder import PAGE
from fanin.spark.ack.page_merger import merge_task
from fanin.spark.ack.schemas import page_records
from fanin.spark.runtime.rejects import Reason
from tests.spark.given import Given, batch, block, rows_of

BATCH, OTHER = batch(7, 600_000), batch(9, 100)
SOURCE = Given((BATCH, OTHER))
ORDINALS = InputSchema(by_id=False)
MASK = Tree().full


def page(
    batch_id: int, number: int, *offsets: int, prefix: str | None = None, failed: bool = False
) -> tuple[int, int, bytes, bool, str | None]:
    return batch_id, number, np.array(offsets, "<u2").tobytes(), failed, prefix


def merged(pages: list[Any], schema: InputSchema = ORDINALS, *, at_once: int = 100) -> list[dict[str, Any]]:
    """The rows that one task gives, of pages that come ``at_once`` to a record batch."""
    records = []
    for first in range(0, len(pages), at_once):
        batch_ids, numbers, bits, failed, values = zip(*pages[first : first + at_once], strict=True)
        records.append(
            page_records(
                len(batch_ids), batch_id=batch_ids, page=numbers, bits=bits, failed=failed, value=values
            )
        )
    return rows_of(merge_task(SOURCE, schema)(records))


def marks(rows: list[dict[str, Any]]) -> list[tuple[int, Bits]]:
    return [
        (row["batch_id"], Bits(row["level"], row["number"], row["mask"] & MASK))
        for row in rows
        if row["mask"]
    ]


def rejects(rows: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((row["value"], row["reason"]) for row in rows if row["reason"])


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_pages_of_several_batches_and_windows_become_their_marks(at_once: int) -> None:
    # Given pages in order of batch and page, however they are cut into record batches
    pages = [page(7, 0, 3), page(7, 1, 0), page(7, 9, 63), page(9, 0, 64, 65)]

    rows = merged(pages, at_once=at_once)

    assert sorted(marks(rows)) == [
        (7, Bits(0, 0, 8)),
        (7, Bits(0, PAGE // 64, 1)),
        (7, Bits(0, 9 * PAGE // 64, 1 << 63)),
        (9, Bits(0, 1, 3)),
    ]
    assert not rejects(rows)


@pytest.mark.parametrize("at_once", [1, 100])
def test_items_that_several_pages_have_are_rejects_but_for_one(at_once: int) -> None:
    # Given a page that three tasks have seen
    pages = [page(7, 1, 5, 6), page(7, 1, 6, 7), page(7, 1, 6)]

    rows = merged(pages, at_once=at_once)

    assert marks(rows) == [(7, Bits(0, PAGE // 64, 0b1110_0000))]
    value = ORDINALS.row_json(7, PAGE + 6)
    assert rejects(rows) == {(value, Reason.DUPLICATE): 2}


def test_a_repeat_is_shown_under_the_id_that_it_came_with() -> None:
    # Given the same item under the ids of two groups
    first, second = block(BATCH, 0, 100).prefix, block(BATCH, 50, 100).prefix
    pages = [page(7, 0, 70, prefix=first), page(7, 0, 70, prefix=second)]

    rows = merged(pages, InputSchema(by_id=True))

    assert rejects(rows) == {(f"{second}:20", Reason.DUPLICATE): 1}


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_an_item_that_failed_is_not_marked(at_once: int) -> None:
    # Given items of which one failed, and was acknowledged as well; and a page of failed items alone
    pages = [page(7, 0, 4, failed=True), page(7, 0, 3, 4), page(7, 1, 9, failed=True)]
    rows = merged(pages, at_once=at_once)

    assert marks(rows) == [(7, Bits(0, 0, 8))]
    assert rejects(rows) == {(ORDINALS.row_json(7, 4), Reason.DUPLICATE): 1}


def test_rejects_and_numbers_of_rows_go_through() -> None:
    records = [
        page_records(1, page=[8], value=["x"], reason=["malformed"], detail=["because"]),
        page_records(1, rows=[12]),
    ]

    rows = rows_of(merge_task(SOURCE, ORDINALS)(records))

    assert [(row["value"], row["reason"], row["detail"], row["rows"]) for row in rows] == [
        ("x", "malformed", "because", None),
        (None, None, None, 12),
    ]
