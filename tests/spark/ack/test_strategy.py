"""Which strategy suits an input."""

from pathlib import Path

from pyspark.sql import SparkSession

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.ack.strategy import Strategy, choose_strategy, readable


def test_the_strategy_is_chosen_by_the_input(spark: SparkSession, tmp_path: Path) -> None:
    # Given ordinals in order, in no order, and few
    schema = InputSchema(by_id=False, batch_id=7)
    ordered = spark.range(20_000).withColumnRenamed("id", "ordinal")
    scattered = ordered.selectExpr("(ordinal * 7919) % 600000 AS ordinal")
    ordered.write.parquet(str(tmp_path / "files"))

    assert choose_strategy(ordered, schema) is Strategy.SQL
    assert choose_strategy(scattered, schema) is Strategy.PAGES
    assert choose_strategy(scattered.limit(100), schema) is Strategy.SQL
    # And files are read by the tasks only if the columns are in them, as numbers
    files = ParquetFiles(str(tmp_path / "files"))
    assert readable(files, schema)
    assert not readable(files, InputSchema(by_id=False))
    assert not readable(files, InputSchema(by_id=True))
