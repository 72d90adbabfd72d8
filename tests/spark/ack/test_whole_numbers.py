"""Which values of a column are whole numbers; those of totals, in ``test_values``, are looked at likewise."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from fanin.spark.ack.whole_numbers import whole_number


@pytest.mark.parametrize(("kind", "first"), [("float", 1 << 24), ("double", 1 << 53)])
def test_a_floating_point_number_that_may_stand_for_the_next_one_is_not_taken(
    spark: SparkSession, kind: str, first: int
) -> None:
    # Given the numbers around the first one that a neighbour is rounded to
    values = [first - 1, 1 - first, first, first + 1, -first, 2 * first]
    rows = spark.createDataFrame(list(enumerate(values)), "at int, ordinal long")
    rows = rows.withColumn("ordinal", rows["ordinal"].cast(kind)).orderBy("at")

    found = rows.select(whole_number("ordinal", rows.schema["ordinal"].dataType)).collect()

    # Then those below it are themselves, and the others are left out
    assert [number for (number,) in found] == [first - 1, 1 - first, None, None, None, None]
