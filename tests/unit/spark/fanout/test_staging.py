"""How a staging is counted; the staging itself is tested on Spark."""

from pyspark.sql.types import StructType

from fanin.spark.fanout.staging import Staging


def test_a_staging_has_the_rows_of_all_its_partitions() -> None:
    assert Staging("/staging", "rows-1", StructType(), {0: 3, 5: 4}).rows == 7
    assert Staging("/staging", "rows-1", StructType(), {}).rows == 0
