"""Which strategy suits an input."""

from pyspark.sql import SparkSession

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.strategy import Strategy, choose_strategy


def test_the_strategy_is_chosen_by_the_input(spark: SparkSession) -> None:
    # Given ordinals in order, in no order, and few
    schema = InputSchema(by_id=False, batch_id=7)
    ordered = spark.range(20_000).withColumnRenamed("id", "ordinal")
    scattered = ordered.selectExpr("(ordinal * 7919) % 600000 AS ordinal")

    assert choose_strategy(ordered, schema) is Strategy.SQL
    assert choose_strategy(scattered, schema) is Strategy.PAGES
    assert choose_strategy(scattered.limit(100), schema) is Strategy.SQL
