"""Text that cannot be read is taken for neither an item nor a number, and is shown as it came."""

from pyspark.sql import SparkSession

from fanin.spark.runtime.unreadable import (
    LINE,
    MARK,
    PROBLEM,
    UNREADABLE,
    marked,
    readable_columns,
    unmarked,
    unmarked_text,
)


def test_a_text_is_marked(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("5",), (None,)], f"{LINE} string")

    found = [row[0] for row in rows.select(marked()).collect()]

    assert found == [f"5{MARK}", None]


def test_a_mark_is_taken_off_the_same_way_in_sql_and_alone(spark: SparkSession) -> None:
    given = [
        (f"{{no{MARK}", "why"),
        (f"5{MARK}", None),
        ("x", "why"),
        ("", None),
        (None, "why"),
        (None, None),
    ]
    rows = spark.createDataFrame(given, "value string, detail string")

    found = [tuple(row) for row in unmarked(rows).collect()]

    assert found == [unmarked_text(value, detail) for value, detail in given]
    assert found[:3] == [("{no", UNREADABLE), ("5", UNREADABLE), ("x", "why")]


def test_a_mark_makes_a_number_none(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("5",)], f"{LINE} string").select(marked().alias("ordinal"))
    assert rows.selectExpr("try_cast(ordinal AS BIGINT)").head()[0] is None


def test_columns_of_the_dataset_are_the_others(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], f"item string, {LINE} string, {PROBLEM} string")
    assert readable_columns(frame) == ["item"]
