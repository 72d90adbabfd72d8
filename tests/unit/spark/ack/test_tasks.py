"""Joining Spark's pages of rows to larger ones."""

import pyarrow as pa
import pytest

from fanin.spark.ack.coalescer import chunks, coalesce_task
from fanin.spark.ack.input_schema import InputSchema
from tests.spark.given import Given, batch, rows_of


def record(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"ordinal": pa.array(values, pa.int64())})


def test_pages_are_joined_until_there_are_enough_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanin.spark.ack.coalescer._CHUNK", 4)
    records = [record(1, 2), record(), record(3), record(4, 5), record(6)]

    assert [chunk.column(0).to_pylist() for chunk in chunks(records)] == [[1, 2, 3, 4, 5], [6]]


def test_pages_with_and_without_rows_as_they_came_are_joined() -> None:
    # Given pages of files of which some have a row that names no item
    ragged = pa.RecordBatch.from_pydict(
        {"ordinal": pa.array([None], pa.int64()), "raw": pa.array(['{"ordinal": 1e30}'])}
    )
    (chunk,) = chunks([record(1), ragged, record(2), ragged])
    assert chunk.to_pydict() == {
        "ordinal": [1, None, 2, None],
        "raw": [None, '{"ordinal": 1e30}', None, '{"ordinal": 1e30}'],
    }


def test_no_rows_are_no_chunks() -> None:
    assert list(chunks([record(), record()])) == []


def test_a_task_without_rows_says_that_it_read_none() -> None:
    task = coalesce_task(Given((batch(7, 9),)), InputSchema(by_id=False, batch_id=7))
    assert [row["rows"] for row in rows_of(task([]))] == [0]
