"""Columns that are declared once, for Arrow and for Spark."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fanin.spark.runtime.arrow import ddl, page

COLUMNS = pa.schema(
    [
        ("part", pa.int8()),
        ("level", pa.int32()),
        ("batch_id", pa.int64()),
        ("complete", pa.bool_()),
        ("why", pa.string()),
        ("bits", pa.binary()),
        ("totals", pa.list_(pa.int64())),
    ]
)
ROWS = [(1, 2, 2**53, True, "torn", b"\x00\xff", [3]), (None,) * 7]


@pytest.mark.parametrize("rows", [ROWS, []], ids=("rows", "nothing"))
def test_a_page_passes_through_spark_as_it_was_declared(
    spark: SparkSession, rows: list[tuple[object, ...]]
) -> None:
    found = spark.range(0, 1, 1, 1).mapInArrow(lambda _: iter([page(COLUMNS, rows)]), ddl(COLUMNS))
    assert found.columns == COLUMNS.names
    assert [tuple(row) for row in found.collect()] == rows


def test_a_type_that_no_task_uses_is_refused() -> None:
    with pytest.raises(KeyError):
        ddl(pa.schema([("day", pa.date32())]))
