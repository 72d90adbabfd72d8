"""What the audit says about batches: a verdict for each, and for random ones what the ledger says."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from bench.spark_audit import PARTITIONS, audited, wrongly_told
from fanin.domain.batch import Mode, OpenBatch, State
from fanin.domain.marks import Done
from fanin.spark.auditing import sums
from fanin.spark.auditing.verdicts import BatchVerdict, audit_of
from fanin.spark.jobs.audit import SETTINGS
from tests.spark.playing import DEEP, lost, played, ranges_of
from tests.spark.setting import setting
from tests.spark.tables import Tables


def test_every_batch_has_its_verdict_with_the_worst_finding_first_its_age_and_its_rate(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given a batch for each verdict: nothing wrong; no words; complete with pending items; done and not
    # complete; filed under another state; and the last again, while it is active
    tables = Tables()
    sound, group = tables.batch(100)
    tables.ack(group, (0, 40))
    counted = tables.ledger.open(OpenBatch(mode=Mode.ESTIMATED))
    early, stuck, misfiled, active = (tables.batch(70)[0] for _ in range(4))
    # And batches that ended a minute before reading began, and a millisecond earlier, with pending items
    minute, earlier = (tables.batch(70)[0] for _ in range(2))
    # And one that ended 40 s after it was opened, with 30 of its items done
    timed, group = tables.batch(100)
    tables.ack(group, (0, 30))
    tables.dump()
    ended = tables.memory.clock.now()
    tables.set_batch(early, state=State.COMPLETE, ended_at=ended)
    tables.set_batch(counted, items=9, acked=12)  # some were counted twice
    tables.set_batch(stuck, items=0)
    for batch in (early, misfiled):
        tables.batches[batch.batch_id]["shelf"] = {"S": "open#9"}
    tables.set_batch(active, items=0, touched_at=tables.at)
    tables.set_batch(minute, state=State.COMPLETE, ended_at=tables.at - 60_000)
    tables.set_batch(earlier, state=State.COMPLETE, ended_at=tables.at - 60_001)
    tables.set_batch(timed, state=State.CANCELLED, ended_at=tables.row(timed).created_at + 40_000)

    # When they are audited, and reading took ten minutes
    found = audit_of(replace(tables.snapshot(spark, tmp_path), until=tables.at + 600_000))
    with found.kept():
        rows = {row["batch_id"]: row for row in found.batches(found.findings()).collect()}

    assert {batch_id: row["verdict"] for batch_id, row in rows.items() if batch_id != timed.batch_id} == {
        sound.batch_id: BatchVerdict.SOUND.value,
        counted.batch_id: BatchVerdict.COUNTED.value,
        early.batch_id: BatchVerdict.EARLY.value,
        stuck.batch_id: BatchVerdict.STUCK.value,
        misfiled.batch_id: BatchVerdict.WRONG.value,
        active.batch_id: BatchVerdict.IN_FLUX.value,
        minute.batch_id: BatchVerdict.IN_FLUX.value,
        earlier.batch_id: BatchVerdict.EARLY.value,
    }
    assert (rows[early.batch_id]["wrong"], rows[active.batch_id]["in_flux"]) == (2, 1)
    assert (rows[counted.batch_id]["done"], rows[counted.batch_id]["pending"]) == (9, 0)
    row = rows[timed.batch_id]
    assert (row["age"], row["rate"], row["done"], row["pending"]) == (40, 0.75, 30, 70)


def test_a_batch_with_most_of_the_words_is_no_single_task(spark: SparkSession, tmp_path: Path) -> None:
    # Given small batches, and one with most of the words
    tables = Tables()
    for items in (*[70] * 40, 64 * 300):
        _, group = tables.batch(items, totals=("rows",))
        tables.ledger.mark([Done(group[n], {"rows": n}) for n in range(0, items, 64)]).whole()
    tables.dump()
    snapshot = tables.snapshot(spark, tmp_path)
    found = audit_of(replace(snapshot, words=snapshot.words.repartition(8)))

    # When batches are too many to be broadcast, and few bytes count as many
    few = {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "5000",
        "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.0",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "5000",
    }
    with ExitStack() as stack:
        for name, value in {**few, **SETTINGS}.items():
            stack.enter_context(setting(spark, name, value))
        for rows in (sums.per_batch(found.words), sums.word_totals(found.words)):
            rows.collect()
            # then its words are joined in several tasks
            plan = rows._jdf.queryExecution().executedPlan().toString()
            assert "skew=true" in plan.partition("== Initial Plan ==")[0]


@pytest.mark.soak
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
    found = audit_of(tables.snapshot(spark, tmp_path))
    with found.kept():
        findings = found.findings().persist()
        audited_batches = found.batches(findings).persist()
        rows = audited_batches.collect()
        ranges: dict[int, list[tuple[int, int]]] = {batch_id: [] for batch_id in batches}
        for row in found.missing(audited_batches).orderBy("batch_id", "start").collect():
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


@pytest.mark.soak
@pytest.mark.usefixtures("as_deployed")
def test_ten_million_words_are_audited_as_planted(spark: SparkSession) -> None:
    # Given an export of 10,000,000 words of level 0, with three kinds of findings planted in it
    # When it is audited, what is shuffled in as many parts as in the bench
    with setting(spark, "spark.sql.shuffle.partitions", str(PARTITIONS)):
        seconds, summary, world = audited(spark, 10_000_000)

    # Then each is found, none is invented, and every item is counted
    assert wrongly_told(summary, world) == 0, (seconds, summary)
    assert summary["words"] > 10_000_000
