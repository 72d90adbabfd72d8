"""Bits in Spark SQL, against Python's numbers."""

import pytest
from pyspark.sql import SparkSession

from fanin.spark.ack import sql_bits

NUMBERS = [0, 1, 31, 32, 62, 63, 64, 127, 2**40 - 1]


@pytest.mark.usefixtures("any_ansi")
def test_words_and_masks_are_those_of_the_numbers(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(n,) for n in NUMBERS], "number long")

    found = rows.select("number", sql_bits.word("number"), sql_bits.mask("number")).collect()

    assert {number: (word, mask % 2**64) for number, word, mask in found} == {
        n: (n // 64, 1 << n % 64) for n in NUMBERS
    }


@pytest.mark.usefixtures("any_ansi")
def test_a_union_has_the_bits_of_all_masks(spark: SparkSession) -> None:
    masks = [(1,), (1,), (1 << 40,), (-(2**63),)]
    rows = spark.createDataFrame(masks, "mask long")

    ((union,),) = rows.agg(sql_bits.union("mask")).collect()

    assert union % 2**64 == 1 | 1 << 40 | 1 << 63
