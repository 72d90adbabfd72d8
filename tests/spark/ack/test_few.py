"""What a micro-batch of few rows brings to the driver, counted on Spark."""

from typing import Any
from unittest.mock import Mock

import pytest

from fanin.spark.ack import coalescing
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.runtime.rejects import EVERY
from tests.spark.given import Given, batch, block


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred rows are few, in four tasks."""
    monkeypatch.setattr(coalescing, "ROWS", 100)
    monkeypatch.setattr(coalescing, "TASKS", 4)


def test_many_rows_in_small_partitions_are_not_few(spark, monkeypatch):
    # Given rows that are few in each partition, and many in all
    partitions, each = 4 * coalescing.TASKS, 26
    rows = spark.range(0, partitions * each, 1, partitions).selectExpr("concat('order ', id) AS item")
    schema = InputSchema.of(rows.columns, None)
    # When they are coalesced as few, then they are not, and nothing of them is merged
    given: list[list[Any]] = []
    monkeypatch.setattr(coalescing, "in_order", given.append)
    assert coalescing.coalesce_few(rows, schema, Given(())) is None
    assert given == []


def test_few_rows_in_many_partitions_are_few(spark):
    rows = spark.range(0, 100, 1, 3 * coalescing.TASKS).selectExpr("id AS ordinal")
    schema = InputSchema.of(rows.columns, 7)

    found = coalescing.coalesce_few(rows, schema, Given((batch(7, 100),)))
    # Then the word that is whole is a bit of the level above
    assert found is not None
    assert (found.rows, found.rejects) == (100, [])
    marks = {(row["level"], row["mask"]) for row in found.marks.to_pylist()}
    assert marks == {(0, (1 << 36) - 1), (1, 0b1)}


@pytest.mark.parametrize("columns", ["item string", "batch_id long, ordinal long"])
def test_rows_without_a_partition_are_no_rows(spark, tmp_path, columns):
    # Given a file without a byte, of which Spark makes no partition
    (tmp_path / "acks.json").touch()
    rows = spark.read.schema(columns).json(str(tmp_path))
    assert rows.rdd.getNumPartitions() == 0

    found = coalescing.coalesce_few(rows, InputSchema.of(rows.columns, None), Given(()))

    assert found is not None
    assert (found.rows, found.marks.num_rows, found.rejects) == (0, 0, [])


def test_other_columns_may_have_the_names_that_tasks_use(spark):
    # Given an item in a row with other columns, one of which tasks would take for what is wrong with it
    item = f"{block(batch(7, 9), 0, 9).prefix}:5"
    rows = spark.createDataFrame([(item, 1, "3")], "item string, values int, odd string")
    given = coalescing.Given(rows, Mock(), "", "", None, (), EVERY)

    named, schema, _ = given.named()
    found = coalescing.coalesce_few(named, schema, Given((batch(7, 9),)))

    assert found is not None
    assert (found.marks.num_rows, found.rejects) == (1, [])
