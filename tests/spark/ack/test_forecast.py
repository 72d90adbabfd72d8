"""How many words a run would write, counted by Spark."""

from fanin.spark.ack.driver import words_above
from fanin.spark.ack.page_merger import MARK_SCHEMA
from fanin.spark.runtime.arrow import ddl


def test_the_words_above_are_counted_each_once(spark):
    # Given words of two batches: neighbours below one word, one further away, and one of level 1
    marks = [(1, 0, number, 1) for number in range(100)] + [(1, 0, 64 * 64, 1), (1, 1, 1, 1), (2, 0, 0, 1)]

    above = words_above(spark.createDataFrame([(*mark, None) for mark in marks], ddl(MARK_SCHEMA)))
    # Then above them are on level 1 the words 0, 1 and 64 of the one and 0 of the other, on 2
    # words 0 and 1, and 0, and on each level above one of each
    assert above == 4 + 3 + 4 * 2


def test_nothing_has_nothing_above(spark):
    assert words_above(spark.createDataFrame([], ddl(MARK_SCHEMA))) == 0
