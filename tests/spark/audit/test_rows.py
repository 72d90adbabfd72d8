"""Rows of the tables, typed; what the service cannot have written is kept with its fault."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fanin.domain.totals import MAX_SUM
from fanin.spark.audit import rows
from fanin.spark.audit.rows import LINES, Fault
from tests.spark.tables import FULL, Tables, word_row

pytestmark = pytest.mark.usefixtures("any_ansi")


def typed(spark: SparkSession, how: Any, *items: dict[str, Any]) -> list[dict[str, Any]]:
    from fanin.spark.audit.scan import line

    lines = spark.createDataFrame([(line(item), "file") for item in items], LINES).coalesce(1)
    return [row.asDict() for row in how(lines).collect()]


def test_a_word_has_its_bits_with_bit_63_as_the_sign(spark: SparkSession) -> None:
    (row,) = typed(spark, rows.words, word_row("7/1/12", FULL ^ 1 ^ 1 << 63, 100))

    assert (row["batch_id"], row["level"], row["number"], row["fault"]) == (7, 1, 12, None)
    assert row["bits"] == (FULL ^ 1 ^ 1 << 63)
    assert row["done_bits"] % 2**64 == 1 | 1 << 63
    assert (row["failed_bits"], row["written"], row["expires_at"], row["source"]) == (0, True, 100, "file")


def test_a_row_that_only_has_leases_is_all_pending(spark: SparkSession) -> None:
    (row,) = typed(spark, rows.words, {**word_row("7/0/0", None, 100), "l5": {"N": "1790000030"}})
    assert (row["bits"], row["written"], row["done_bits"], row["fault"]) == (-1, False, None, None)


def test_a_word_has_its_sums(spark: SparkSession) -> None:
    tallies = {"t0": {"N": "-5"}, "t2": {"N": str(MAX_SUM)}, "summed": {"N": "3"}}
    told, bare = typed(spark, rows.words, {**word_row("7/1/0", 5, 100), **tallies}, word_row("7/1/1", 5, 100))
    assert (told["sums"], told["summed"], told["carried"]) == ([-5, None, MAX_SUM, None], 3, None)
    assert (bare["sums"], bare["summed"], bare["fault"]) == (None, None, None)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"word_id": {"S": "07/0/1"}}, Fault.KEY),
        ({"word_id": {"S": f"{2**53}/0/0"}}, Fault.KEY),
        ({"word": {"N": "-1"}}, Fault.ROW),
        ({"word": {"N": str(2**64)}}, Fault.ROW),
        ({"done": {"NS": ["64"]}}, Fault.ROW),
        ({"failed": {"N": "x"}}, Fault.ROW),
        ({"expires_at": {"S": "tomorrow"}}, Fault.ROW),
        ({"t0": {"S": "1"}}, Fault.ROW),
        ({"t3": {"N": "1.5"}}, Fault.ROW),
        ({"t1": {"N": str(MAX_SUM + 1)}}, Fault.ROW),
        ({"t1": {"N": str(-MAX_SUM - 1)}}, Fault.ROW),
        ({"t1": {"N": "9" * 38}}, Fault.ROW),
        ({"summed": {"N": "-1"}}, Fault.ROW),
        ({"carried": {"N": "x"}}, Fault.ROW),
    ],
    ids=str,
)
def test_a_word_that_the_service_did_not_write_is_kept_with_its_fault(
    spark: SparkSession, change: dict[str, Any], fault: Fault
) -> None:
    (row,) = typed(spark, rows.words, {**word_row("7/0/1", FULL - 1, 100), **change})

    assert row["fault"] == fault.value
    assert json.loads(row["detail"])["Item"].items() >= change.items()
    assert (row["batch_id"] is None) == (fault is Fault.KEY)


def test_a_batch_has_the_attributes_that_the_audit_needs_and_no_salt(spark: SparkSession) -> None:
    tables = Tables()
    batch, _ = tables.batch(70, user_key="mine")
    tables.dump()

    (row,) = typed(spark, rows.batches, tables.batches[batch.batch_id])

    stored = tables.row(batch)
    for name in ("batch_id", "items", "user_key", "created_at", "closed_at", "expires_at", "partial"):
        assert row[name] == getattr(stored, name)
    assert (row["state"], row["mode"], row["fault"]) == ("closed", "exact", None)
    assert "salt" not in row


@pytest.mark.parametrize(
    "change",
    [
        {"state": {"S": "done"}},
        {"items": {"N": "-1"}},
        {"salt": {"B": b"short"}},
        {"closed_at": {"S": "now"}},
        {"totals": {"S": "rows rows, cents"}},
        {"totals": {"S": "a b c d e"}},
        {"totals": {"N": "1"}},
        {"t0": {"N": "0.5"}},
    ],
    ids=str,
)
def test_a_batch_that_the_service_did_not_write_has_a_fault(
    spark: SparkSession, change: dict[str, Any]
) -> None:
    tables = Tables()
    batch, _ = tables.batch(70)
    tables.dump()
    (row,) = typed(spark, rows.batches, {**tables.batches[batch.batch_id], **change})
    assert (row["fault"], row["batch_id"]) == (Fault.ROW.value, batch.batch_id)


def test_a_batch_has_its_totals(spark: SparkSession) -> None:
    tables = Tables()
    batch, _ = tables.batch(70, totals=("rows", "cents"))
    tables.set_batch(batch, totals={"rows": 0, "cents": -5}, totals_exact=True)

    (row,) = typed(spark, rows.batches, tables.batches[batch.batch_id])

    assert (row["totals"], row["sums"]) == (["rows", "cents"], [None, -5, None, None])
    assert (row["totals_exact"], row["fault"]) == (True, None)
