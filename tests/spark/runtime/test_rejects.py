"""Rejects as a dataset, counted by reason."""

from unittest.mock import Mock

import pytest

from fanin.errors import InvalidRequest, TooManyRejects
from fanin.spark.runtime import datasets
from fanin.spark.runtime.rejects import (
    SCHEMA,
    Reason,
    RejectLimit,
    check_rejects_folder,
    count_by_reason,
    write_few_rejects,
    write_rejects,
)
from tests.spark.datasets import parquet
from tests.unit.spark.runtime.file_systems import Raised


def test_rejects_are_written_and_counted_by_reason(spark, tmp_path):
    rows = [
        ("x", Reason.NULL.value, "why"),
        (None, Reason.NULL.value, None),
        ("y", Reason.GONE.value, "late"),
    ]

    rejects = spark.createDataFrame(rows, SCHEMA)
    counted = count_by_reason(rejects)

    write_rejects(rejects, f"{tmp_path}/rejects", counted)

    assert counted == {"null": 2, "gone": 1}
    written = spark.read.parquet(f"{tmp_path}/rejects")
    assert set(map(tuple, written.collect())) == {
        ("x", "null", "why"),
        (None, "null", None),
        ("y", "gone", "late"),
    }


def test_no_rejects_are_written_as_an_empty_dataset_is(spark, tmp_path):
    # Given rejects of an earlier run
    folder = f"{tmp_path}/rejects"
    write_rejects(spark.createDataFrame([("x", Reason.NULL.value, None)], SCHEMA), folder, {"null": 1})
    # When this run has none
    write_rejects(spark.createDataFrame([], SCHEMA), folder, {})
    # Then a dataset without rows is there, of the same columns
    written = spark.read.parquet(folder)
    assert written.count() == 0
    assert [(field.name, field.dataType) for field in written.schema] == [
        (field.name, field.dataType) for field in SCHEMA
    ]


def test_too_many_rejects_say_why(spark, tmp_path):
    # Given rejects, most of which have bytes of another encoding
    folder = f"{tmp_path}/rejects"
    rows = [
        *(("again", Reason.DUPLICATE.value, "the item is there twice"),) * 9,
        ("", Reason.NULL.value, "the body is null"),
        ("plain", Reason.MALFORMED.value, "other bytes"),
        ("K\ufffdse", Reason.MALFORMED.value, "other bytes"),
    ]
    rejects = spark.createDataFrame(rows, SCHEMA)
    write_rejects(rejects, folder, counted := count_by_reason(rejects))
    # When all rows are rejects, then the error counts the reasons, shows the commonest that is not harmless,
    # and has better advice than a higher limit
    with pytest.raises(TooManyRejects) as refused:
        RejectLimit().check(counted, 3, folder, spark)
    told = str(refused.value)
    assert told.startswith("3 of 3 rows are rejects")
    assert ": 2 malformed, 1 null, besides 9 duplicate. Nothing else was written." in told
    assert "The commonest (2): malformed, other bytes; for example 'K\ufffdse'. Name the encoding" in told
    assert told.endswith(f"All are in {folder}; look at them and mend the rows")
    assert (refused.value.rejects, refused.value.rows) == (counted, 3)
    # And when more rows are left, then a higher limit is a way, too
    with pytest.raises(TooManyRejects, match=r"at most 2 may be: .*or raise max_rejects"):
        RejectLimit(count=2).check(counted, 50, folder, spark)


def test_rejects_do_not_replace_another_dataset(spark, tmp_path):
    parquet(tmp_path / "orders" / "part-0.parquet", order=[1], value=["x"])
    with pytest.raises(InvalidRequest, match="the dataset in it, with the columns order, value, was not"):
        check_rejects_folder(spark, f"{tmp_path}/orders")


def test_rejects_that_cannot_be_looked_at_are_not_replaced(spark, tmp_path, monkeypatch):
    # Given rejects whose files this role may not read, while it may delete them
    write_few_rejects(spark, [], f"{tmp_path}/rejects", write_empty=True)
    refusal = Raised("java.nio.file.AccessDeniedException: s3://lake/rejects/part-0: 403")
    monkeypatch.setattr(datasets, "_footer", Mock(side_effect=refusal))
    monkeypatch.setattr(datasets, "root_cause", str)
    with pytest.raises(InvalidRequest, match="it cannot be read: java"):
        check_rejects_folder(spark, f"{tmp_path}/rejects")
