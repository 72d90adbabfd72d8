"""Totals recomputed from the leaves; what the tables of a ledger show is tested in ``test_findings``."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from fanin.domain.acks import Result
from fanin.domain.totals import MAX_SUM
from fanin.spark.audit import sums
from fanin.spark.audit.verdicts import joined, present
from tests.spark.tables import Tables


def test_leaves_add_up_by_the_names_of_the_totals(spark: SparkSession, tmp_path: Path) -> None:
    # Given a batch with totals of which two leaves have values, and one without totals
    tables = Tables()
    batch, group = tables.batch(200, totals=("rows", "cents"))
    tables.ledger.ack(results=[Result(group[3], {"rows": 5}), Result(group[130], {"rows": 2, "cents": -7})])
    plain, others = tables.batch(200)
    tables.ack(others, (0, 70))
    tables.dump()
    snapshot = tables.snapshot(spark, tmp_path)

    # When their leaves are added up
    added = sums.per_batch(joined(snapshot))
    told = present(snapshot).join(added, "batch_id", "left").withColumn("by_name", sums.by_name())

    # Then each total has its name, and a batch without totals has none
    found = {row["batch_id"]: row["by_name"] for row in told.collect()}
    assert found == {batch.batch_id: {"rows": 7, "cents": -7}, plain.batch_id: None}


def test_leaves_that_together_have_more_than_a_number_holds_stop_nothing(
    spark: SparkSession, any_ansi: None, tmp_path: Path
) -> None:
    # Given leaves of which somebody made each as large as a whole batch may be
    tables = Tables()
    batch, group = tables.batch(64 * 76, totals=("rows", "cents"))
    tables.ledger.ack(results=[Result(item, {"rows": 1, "cents": 1}) for item in group])
    tables.dump()
    for number in range(76):
        tables.words[f"{batch.batch_id}/0/{number}"]["t0"] = {"N": str(MAX_SUM)}

    # When they are added up, then that total is null, and the other is right
    snapshot = tables.snapshot(spark, tmp_path)
    added = present(snapshot).join(sums.per_batch(joined(snapshot)), "batch_id", "left")
    assert [row[0] for row in added.select(sums.by_name()).collect()] == [{"rows": None, "cents": 64 * 76}]


def test_what_the_ledger_wrote_agrees(spark: SparkSession, tmp_path: Path) -> None:
    # Given a batch of three levels, of which the first and the last words are done
    tables = Tables()
    batch, group = tables.batch(5_000, totals=("rows",))
    tables.ledger.ack(results=[Result(group[n], {"rows": n}) for n in (*range(4_100), 4_998, 4_999)])
    tables.dump()

    # When a word gets more than it was given
    key = f"{batch.batch_id}/1/0"
    before = sums.word_totals(joined(tables.snapshot(spark, tmp_path / "before"))).collect()
    tables.words[key] = {**tables.words[key], "t0": {"N": "1"}}
    after = sums.word_totals(joined(tables.snapshot(spark, tmp_path / "after"))).collect()

    # Then it is named with both numbers, and so is the word above, which has what it was given
    whole = sum(range(4_096))
    assert before == []
    assert {(row["word_id"], row["detail"]) for row in after} == {
        (key, f"rows: 1 stored, {whole} below"),
        (f"{batch.batch_id}/2/0", f"rows: {whole} stored, 1 below"),
    }
