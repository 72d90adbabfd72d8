"""Names of columns, compared as the session does."""

import pytest
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.names import find_name, quoted, with_names
from tests.spark.setting import setting


def test_columns_get_the_names_that_a_job_knows(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1, 2)], "ITEM string, `a.b` int, A int")

    assert with_names(frame, ["item", "reason"]).columns == ["item", "a.b", "A"]
    with setting(spark, "spark.sql.caseSensitive", "true"):
        assert with_names(frame, ["item"]).columns == ["ITEM", "a.b", "A"]


def test_two_columns_of_one_name_are_refused(spark: SparkSession) -> None:
    with setting(spark, "spark.sql.caseSensitive", "true"):
        frame = spark.createDataFrame([("a", "b")], "item string, Item string")
        assert with_names(frame, ["item"]).columns == ["item", "Item"]
    with pytest.raises(InvalidRequest, match="two columns 'item': 'item' and 'Item'"):
        with_names(frame, ["item"])


def test_a_name_is_found_and_quoted(spark: SparkSession) -> None:
    assert find_name(spark, ["The Name", "b"], "the name") == "The Name"
    assert find_name(spark, ["b"], "a") is None
    assert quoted("a`b.c") == "`a``b.c`"
