"""What is done and what is missing, against the ledger that wrote the words."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.spark.audit import progress
from fanin.spark.audit.verdicts import audit, present
from tests.spark.playing import ranges_of
from tests.spark.tables import Tables

MARKED: dict[int, list[tuple[int, int]]] = {
    1: [(0, 1)],
    100: [(3, 5), (63, 64), (99, 100)],
    5_000: [(0, 64), (100, 4_200), (4_999, 5_000)],
    64**3 + 70: [(0, 64**3), (64**3 + 1, 64**3 + 2)],
    64**3 * 3: [(64**3 - 5, 64**3 * 2 + 5)],
}
"""Items of a batch → ranges that are done."""


@pytest.mark.usefixtures("any_ansi")
def test_done_items_and_missing_ranges_are_the_ledger_s(spark: SparkSession, tmp_path: Path) -> None:
    # Given batches of all depths, some of whose items are done, and one that nobody touched
    tables = Tables()
    batches = {}
    for items, ranges in {**MARKED, 70: []}.items():
        batch, group = tables.batch(items)
        tables.ack(group, *ranges)
        batches[batch.batch_id] = items, sum(stop - start for start, stop in ranges)
    tables.dump()
    snapshot = tables.snapshot(spark, tmp_path)

    sums = audit(snapshot).measured.persist()
    done = {row[0]: row[1] for row in sums.groupBy("batch_id").sum("done").collect()}
    missing: dict[int, list[tuple[int, int]]] = {batch_id: [] for batch_id in batches}
    for row in progress.missing(sums, present(snapshot)).orderBy("batch_id", "start").collect():
        missing[row["batch_id"]].append((row["start"], row["stop"]))

    # Then both are what the ledger says
    assert {batch_id: done.get(batch_id, 0) for batch_id in batches} == {
        batch_id: count for batch_id, (_, count) in batches.items()
    }
    assert missing == {batch_id: ranges_of(tables, batch_id) for batch_id in batches}


def test_only_the_batches_of_interest_are_looked_at(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables()
    (one, group), (other, _) = tables.batch(100), tables.batch(100)
    tables.ack(group, (0, 10))
    tables.dump()
    snapshot = tables.snapshot(spark, tmp_path)

    wanted = present(snapshot).where(f"batch_id = {one.batch_id}")
    found = progress.missing(audit(snapshot).measured, wanted).collect()

    assert [tuple(row) for row in found] == [(one.batch_id, 10, 100)]
    assert other.batch_id != one.batch_id
