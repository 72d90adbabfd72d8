"""Random batches, worked on by the real ledger: the audit says what the ledger says. And many words."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from bench.spark_audit import PARTITIONS, audited, wrongly_told
from fanin.spark.audit.verdicts import audit
from tests.spark.playing import DEEP, lost, played, ranges_of
from tests.spark.setting import setting
from tests.spark.tables import Tables

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("seed", range(2, 27))
def test_the_audit_agrees_with_the_ledger_for_many_seeds(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    # Given batches that the ledger has worked on
    random, tables = Random(seed), Tables()  # noqa: S311
    batches = played(tables, random, DEEP)
    tables.dump()
    missing = {batch_id: ranges_of(tables, batch_id) for batch_id in batches}

    # And in some of them a finished word's mark above it is undone
    words = lost(tables, random, batches)
    assert words

    # When they are audited
    found = audit(tables.snapshot(spark, tmp_path))
    found.measured.persist()
    findings = found.findings().persist()
    rows = found.batches(findings).collect()
    ranges: dict[int, list[tuple[int, int]]] = {batch_id: [] for batch_id in batches}
    for row in found.missing().orderBy("batch_id", "start").collect():
        ranges[row["batch_id"]].append((row["start"], row["stop"]))

    # Then done and missing are the ledger's, and the findings are the losses and no others
    assert ranges == missing
    assert {row["batch_id"]: row["pending"] for row in rows} == {
        batch_id: sum(stop - start for start, stop in parts) for batch_id, parts in missing.items()
    }
    assert {(row["kind"], row["word_id"]) for row in findings.collect()} == {
        ("lost_parent", key) for key in words
    }
    spark.catalog.clearCache()


@pytest.mark.usefixtures("as_deployed")
def test_ten_million_words_are_audited_as_planted(spark: SparkSession) -> None:
    # Given an export of 10,000,000 words of level 0, with three kinds of findings planted in it
    # When it is audited, what is shuffled in as many parts as in the bench
    with setting(spark, "spark.sql.shuffle.partitions", str(PARTITIONS)):
        seconds, summary, world = audited(spark, 10_000_000)

    # Then each is found, none is invented, and every item is counted
    assert wrongly_told(summary, world) == 0, (seconds, summary)
    assert summary["words"] > 10_000_000
