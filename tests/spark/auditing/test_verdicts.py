"""The audit of many words, and of random batches, of which it says what the ledger says."""

from contextlib import ExitStack
from dataclasses import replace
from random import Random

import pytest

from bench.spark_audit import PARTITIONS, audited, wrongly_told
from fanin.domain.marks import Done
from fanin.domain.tree import Tree
from fanin.spark.auditing import sums
from fanin.spark.auditing.progress import TOP, with_trees
from fanin.spark.jobs.audit import SETTINGS
from tests.spark.playing import DEEP, lost, played, ranges_of
from tests.spark.setting import setting
from tests.spark.tables import Tables


def test_a_batch_with_most_of_the_words_is_no_single_task(spark, tmp_path):
    # Given small batches, and one with most of the words
    tables = Tables()
    for items in (*[70] * 40, 64 * 300):
        _, group = tables.batch(items, totals=("rows",))
        tables.ledger.mark([Done(group[n], {"rows": n}) for n in range(0, items, 64)]).whole()
    tables.dump()
    snapshot = tables.snapshot(spark, tmp_path)
    found = replace(snapshot, word_rows=snapshot.word_rows.repartition(8))
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
def test_the_audit_agrees_with_the_ledger_for_many_seeds(spark, tmp_path, seed):
    # Given batches that the ledger has worked on
    random, tables = Random(seed), Tables()
    batches = played(tables, random, DEEP)
    tables.dump()
    missing = {batch_id: ranges_of(tables, batch_id) for batch_id in batches}
    # And in some of them a finished word's mark above it is undone
    words = lost(tables, random, batches)
    assert words
    # When they are audited
    found = tables.snapshot(spark, tmp_path)
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


@pytest.mark.soak(long=True)
@pytest.mark.usefixtures("as_deployed")
def test_ten_million_words_are_audited_as_planted(spark):
    # Given an export of 10,000,000 words of level 0, with three kinds of findings planted in it
    # When it is audited, what is shuffled in as many parts as in the bench
    with setting(spark, "spark.sql.shuffle.partitions", str(PARTITIONS)):
        seconds, summary, world = audited(spark, 10_000_000)
    # Then each is found, none is invented, and every item is counted
    assert wrongly_told(summary, world) == 0, (seconds, summary)
    assert summary["words"] > 10_000_000


TREE = Tree()
SIZES = [1, 2, 63, 64, 65, 4_095, 4_096, 4_097, 5_000, 64**3, 64**3 + 1, 64**4 * 5 + 7, 2**40]

pytestmark = pytest.mark.usefixtures("any_ansi")


def signed(word: int) -> int:
    return word - (word >> 63 << 64)


def test_root_last_words_and_their_edges_are_those_of_the_tree(spark):
    rows = spark.createDataFrame([(n,) for n in SIZES], "items long")

    found = {row["items"]: row for row in with_trees(rows).collect()}

    for n in SIZES:
        root = TREE.root_level(n)
        assert found[n]["root"] == root
        assert found[n]["lasts"][: root + 1] == [TREE.last(level, n) for level in range(root + 1)]
        edges = [TREE.full & ~TREE.residue(level, TREE.last(level, n), n) for level in range(root + 1)]
        assert found[n]["edges"][: root + 1] == [signed(edge) for edge in edges]
        assert len(found[n]["lasts"]) == TOP + 1


def test_a_batch_without_items_has_no_root(spark):
    (row,) = with_trees(spark.createDataFrame([(0,)], "items long")).collect()
    assert row["root"] is None
