"""A few rows as tasks and the driver coalesce them, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from fanin.domain.tree import Mark
from fanin.spark.ack import few
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.page_merger import merge_task
from fanin.spark.ack.schemas import Records
from tests.spark.given import Given, batch, block, items_of, minimal, rows_of, shuffled

ROW = batch(7, 300_000)
GIVEN = Given((ROW,))
IDS, ORDINALS = InputSchema(by_id=True), InputSchema(by_id=False, batch_id=7)


def record(ordinals: list[int], fails: int | None = None) -> Records:
    flags = [place == fails for place in range(len(ordinals))]
    return pa.RecordBatch.from_pydict(
        {"ordinal": pa.array(ordinals, pa.int64()), "_fails": pa.array(flags, pa.bool_())}
    )


def test_a_task_gives_the_pages_of_few_rows() -> None:
    task = few.coalesce_few_task(GIVEN, ORDINALS, rows=5, size=few.BYTES)
    rows = rows_of(task([record([1, 2]), record([]), record([70_000, 3, -1])]))
    assert sorted(row["page"] for row in rows if row["bits"]) == [0, 0, 2]
    assert [row["reason"] for row in rows if row["reason"]] == ["foreign"]
    assert [row["rows"] for row in rows if row["rows"] is not None] == [5]


@pytest.mark.parametrize(
    "records", [[record([1, 2]), record([3, 4, 5, 6])], [record([1, 2]), record([3, 4], fails=1)]]
)
def test_a_task_gives_nothing_of_many_rows_or_of_rows_that_fail(records: list[Records]) -> None:
    (row,) = rows_of(few.coalesce_few_task(GIVEN, ORDINALS, rows=5, size=few.BYTES)(records))
    assert (row["bits"], row["rows"], row["reason"], row["detail"]) == (None, None, None, few._MORE)


def test_a_task_stops_reading_where_there_are_too_many_rows() -> None:
    def records():
        yield record([1, 2])
        yield record([3])
        raise AssertionError("it read on")

    assert len(rows_of(few.coalesce_few_task(GIVEN, ORDINALS, rows=2, size=few.BYTES)(records()))) == 1


def test_a_task_gives_nothing_that_takes_too_many_bytes() -> None:
    # Given few rows, but of values that are long, and rows that are as far apart as can be
    long = pa.RecordBatch.from_pydict(
        {"item": pa.array(["x" * 200] * 50, pa.string()), "_fails": [False] * 50}
    )
    for schema, rows in ((IDS, long), (ORDINALS, record(list(range(0, 300_000, 30_000))))):
        given = list(few.coalesce_few_task(GIVEN, schema, rows=100, size=few.BYTES)([rows]))
        size = sum(one.nbytes for one in given)

        assert rows_of(few.coalesce_few_task(GIVEN, schema, rows=100, size=size)([rows])) == rows_of(given)
        (row,) = rows_of(few.coalesce_few_task(GIVEN, schema, rows=100, size=size - 1)([rows]))
        assert (row["bits"], row["reason"], row["detail"]) == (None, None, few._MORE)


def test_ids_and_what_is_left_out() -> None:
    prefix = block(ROW, 100, 50).prefix
    items = [f"{prefix}:3", None, "x", f"{prefix}:50"]
    rows = pa.RecordBatch.from_pydict({"item": pa.array(items, pa.string()), "_fails": [False] * 4})
    found = rows_of(few.coalesce_few_task(GIVEN, IDS, rows=9, size=few.BYTES)([rows]))
    assert {(row["value"], row["reason"]) for row in found if row["reason"]} == {
        (None, "null"),
        ("x", "malformed"),
        (f"{prefix}:50", "foreign"),
    }


def test_the_driver_lifts_to_the_minimal_cover() -> None:
    # Given whole windows of a batch, the whole batch but one item, and single items
    chosen = [*range(262_144), *range(262_200, 300_000, 3)]
    pages = list(few.coalesce_few_task(GIVEN, ORDINALS, rows=10**6, size=few.BYTES)([record(chosen)]))
    (records,) = shuffled(pages, 1)
    merged = rows_of(merge_task(GIVEN, ORDINALS)(records))

    marks = [tuple(row.values()) for row in few._marks(merged, GIVEN).to_pylist()]

    assert sorted(items_of(marks)) == [(7, n) for n in chosen]
    # And what is below one word is written together, so that the word above is written once
    assert marks == sorted(marks, key=lambda one: (one[2] << 6 * one[1], one[1]))
    unsigned = {Mark(level, number, mask & (1 << 64) - 1) for _, level, number, mask in marks}
    assert unsigned == minimal(set(chosen), 3)


def test_nothing_is_no_marks() -> None:
    assert few._marks([], GIVEN).num_rows == 0
