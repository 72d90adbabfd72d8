"""A few rows as tasks and the driver coalesce them, without Spark."""

from unittest.mock import Mock

import pyarrow as pa
import pytest

from fanin.domain.tree import Bits
from fanin.errors import TooManyRejects
from fanin.spark.ack import coalescing
from fanin.spark.ack.coalescer import coalesce_task
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.page_merger import merge_task
from fanin.spark.runtime import rejects
from fanin.spark.runtime.arrow import ArrowBatches
from fanin.spark.runtime.rejects import RejectLimit
from tests.spark.given import Given, batch, items_of, minimal, rows_of, shuffled
from tests.unit.spark.runtime.file_systems import FileSystem

ROW = batch(7, 300_000)
GIVEN = Given((ROW,))
ORDINALS = InputSchema(by_id=False, batch_id=7)


def record(ordinals: list[int]) -> ArrowBatches:
    return pa.RecordBatch.from_pydict({"ordinal": pa.array(ordinals, pa.int64())})


def test_a_task_stops_reading_where_there_are_too_many_rows(monkeypatch):
    monkeypatch.setattr("fanin.spark.ack.coalescer._CHUNK", 1)

    def records():
        yield record([1, 2])
        yield record([3])
        raise AssertionError("it read on")

    rows = rows_of(coalesce_task(GIVEN, ORDINALS, most=2)(records()))
    assert [row["rows"] for row in rows if row["rows"] is not None] == [3]


def test_few_words_are_written_in_the_order_of_the_words_above():
    # Given a whole window of a batch, and single items
    chosen = [*range(262_144), *range(262_200, 300_000, 3)]
    pages = list(coalesce_task(GIVEN, ORDINALS)([record(chosen)]))
    (records,) = shuffled(pages, 1)

    found = coalescing.Few(len(chosen), rows_of(merge_task(GIVEN, ORDINALS)(records)))
    marks = [tuple(row.values()) for row in found.marks.to_pylist()]

    assert sorted(items_of(marks)) == [(7, n) for n in chosen]
    # And what is below one word is written together, so that the word above is written once
    assert marks == sorted(marks, key=lambda one: (one[2] << 6 * one[1], one[1]))
    unsigned = {Bits(level, number, mask & (1 << 64) - 1) for _, level, number, mask, _ in marks}
    assert unsigned == minimal(set(chosen), 3)


def test_too_many_rejects_are_told_before_anything_is_marked(monkeypatch):
    # Given a row to mark, and one that is left out
    left_out = {"value": "x", "reason": "malformed", "detail": "why"}
    found = coalescing.Few(2, [left_out])
    rows = Mock(columns=["item"], schema=None, sparkSession=FileSystem().session())
    monkeypatch.setattr(coalescing, "with_names", lambda rows, _names: rows)
    monkeypatch.setattr(coalescing, "coalesce_few", lambda *_: found)
    monkeypatch.setattr(coalescing, "check_columns", lambda *_: ())
    monkeypatch.setattr(coalescing, "mark", lambda *_: pytest.fail("it was marked"))
    monkeypatch.setattr(rejects, "check_rejects_folder", lambda *_: None)
    monkeypatch.setattr(rejects, "_find_commonest", lambda *_: "")
    # When none may be left out, then the run ends there
    with pytest.raises(TooManyRejects, match="1 of 2 rows are rejects, and at most 0 may be"):
        coalescing.acknowledge_few(
            coalescing.Given(rows, Mock(), "", "hdfs://n/r", None, (), RejectLimit(count=0))
        )


def test_the_batches_of_all_items_are_read_at_once(monkeypatch):
    # Given an item of each of many batches
    rows = [batch(number, 100) for number in range(1, 301)]
    counting = Given(tuple(rows))
    reads = list[int]()
    read = counting.read
    monkeypatch.setattr(Given, "read", lambda _, some: reads.append(len(some)) or read(some))
    schema = InputSchema(by_id=False)
    record = pa.RecordBatch.from_pydict(
        {
            "batch_id": pa.array([row.batch_id for row in rows], pa.int64()),
            "ordinal": pa.array([1] * 300, pa.int64()),
            "raw": pa.array([None] * 300, pa.string()),
        }
    )
    (records,) = shuffled(list(coalesce_task(counting, schema)([record])), 1)

    together = pa.Table.from_batches(records).combine_chunks().to_batches()
    found = coalescing.Few(300, rows_of(merge_task(counting, schema)(together)))

    assert found.marks.num_rows == 300
    assert len(reads) <= 3
