"""What rows name, split and resolved in Spark SQL."""

import json

import pytest
from pyspark.sql.types import NullType

from fanin.spark.ack.input_schema import LONGEST, InputSchema, normalize

BY_ID, BY_ORDINAL = InputSchema(by_id=True), InputSchema(by_id=False)
OF_BATCH = InputSchema(by_id=False, batch_id=7)


@pytest.mark.usefixtures("any_ansi")
def test_text_that_is_not_a_whole_number_is_kept_as_json(spark):
    rows = spark.createDataFrame([("7", "3"), ("7", "x"), ("y", None)], "batch_id string, ordinal string")

    found = normalize(rows, BY_ORDINAL).collect()

    assert [(row["batch_id"], row["ordinal"]) for row in found] == [(7, 3), (7, None), (None, None)]
    assert [row["raw"] and json.loads(row["raw"]) for row in found] == [
        None,
        {"batch_id": "7", "ordinal": "x"},
        {"batch_id": "y", "ordinal": None},
    ]


def test_whole_numbers_need_no_json(spark):
    rows = normalize(spark.createDataFrame([(3,), (None,)], "ordinal int"), OF_BATCH)

    assert isinstance(rows.schema["raw"].dataType, NullType)
    assert [(row["batch_id"], row["ordinal"]) for row in rows.collect()] == [(7, 3), (7, None)]


@pytest.mark.usefixtures("any_ansi")
@pytest.mark.parametrize("kind", ["double", "float", "decimal(20,2)"])
def test_floating_point_numbers_without_a_fraction_are_taken(spark, kind):
    # Given ordinals as pandas has them beside nulls
    values = [3.0, None, 1.5, 0.0, -0.0, *([float("nan"), float("inf")] if kind != "decimal(20,2)" else [])]
    rows = spark.createDataFrame(list(enumerate(values)), "at int, ordinal double")
    rows = rows.withColumn("ordinal", rows["ordinal"].cast(kind))

    found = normalize(rows, OF_BATCH).orderBy("at").collect()

    assert [row["ordinal"] for row in found][:5] == [3, None, None, 0, 0]
    assert all(row["ordinal"] is None for row in found[5:])
    raw = [row["raw"] for row in found]
    assert raw[:2] == [None, None]
    assert json.loads(raw[2])["ordinal"] in {1.5, "1.50"}
    assert all(one is not None for one in raw[5:])


def test_no_more_is_read_of_a_value_than_an_id_may_have(spark):
    rows = spark.createDataFrame([("x" * 10_000,), ("7:g:1",)], "item string")
    assert [len(row["item"]) for row in normalize(rows, BY_ID).collect()] == [LONGEST, 5]
    # And texts are as long as their characters are, however many bytes these take
    texts = [("é" * length,) for length in (LONGEST // 2, LONGEST // 2 + 1, LONGEST, LONGEST + 1)]
    rows = spark.createDataFrame(texts, "item string")
    assert [row["item"] for row in normalize(rows, BY_ID).collect()] == [text[:LONGEST] for (text,) in texts]

    rows = spark.createDataFrame([("x" * 10_000,)], "ordinal string")
    assert len(normalize(rows, OF_BATCH).head()["raw"]) < 2 * LONGEST
