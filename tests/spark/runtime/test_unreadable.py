"""Text that cannot be read is taken for neither an item nor a number, and is shown as it came."""

from pyspark.sql import SparkSession

from fanin.spark.runtime.unreadable import LINE, PROBLEM, marked, readable_columns, unmarked


def test_a_text_is_marked_and_shown_without_the_mark(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("5",), (None,)], f"{LINE} string")

    found = rows.select(marked().alias("marked")).withColumn("shown", unmarked("marked")).collect()

    assert found[0]["marked"] != "5"
    assert not found[0]["marked"][-1].isdigit()
    assert [row["shown"] for row in found] == ["5", None]


def test_a_mark_makes_a_number_none(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("5",)], f"{LINE} string").select(marked().alias("ordinal"))
    assert rows.selectExpr("try_cast(ordinal AS BIGINT)").head()[0] is None


def test_columns_of_the_dataset_are_the_others(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], f"item string, {LINE} string, {PROBLEM} string")
    assert readable_columns(frame) == ["item"]
