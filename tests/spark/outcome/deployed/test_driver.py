"""The rows of a dataset with what became of their items, on the stack."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from fanin.domain.marks import Failure, ItemRange
from fanin.spark.outcome.driver import outcomes
from fanin.spark.runtime.service import Service
from tests.spark.items import filled

pytestmark = pytest.mark.emulator


def test_rows_keep_their_columns_and_get_an_outcome(spark: SparkSession, service: Service) -> None:
    # Given a batch with a range done, an item failed, and rows that name items, one twice and one of none,
    # whose other columns are called like those of this library
    batch, group = filled(service)
    ledger = service.ledger()
    ledger.mark([ItemRange(group.prefix, 100, 8_000)]).whole()
    ledger.mark([Failure(group[7], "no such customer")]).whole()
    rows = [
        (group[100], 1, "a"),
        (group[7_999], 2, "b"),
        (group[8_000], 3, "c"),
        (group[7], 4, "d"),
        (group[7], 5, "e"),
        ("order 12", 6, "f"),
        (None, 7, "g"),
    ]
    frame = spark.createDataFrame(rows, "item string, value int, `re.ason` string")

    told = outcomes(frame, service).orderBy("value")

    # Then each row is there once
    assert told.columns == [*frame.columns, "outcome", "why"]
    assert [tuple(row) for row in told.select("value", "outcome", "why").collect()] == [
        (1, "done", None),
        (2, "done", None),
        (3, "pending", None),
        (4, "failed", "no such customer"),
        (5, "failed", "no such customer"),
        (6, "unknown", "it names no item"),
        (7, "unknown", "it names no item"),
    ]
    assert batch.batch_id
