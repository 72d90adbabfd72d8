"""The tree in SQL, against the tree of the domain."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from fanin.domain.tree import Tree
from fanin.spark.audit.sql_tree import TIER, TOP, with_places, with_trees

TREE = Tree()
SIZES = [1, 2, 63, 64, 65, 4_095, 4_096, 4_097, 5_000, 64**3, 64**3 + 1, 64**4 * 5 + 7, 2**40]

pytestmark = pytest.mark.usefixtures("any_ansi")


def signed(word: int) -> int:
    return word - (word >> 63 << 64)


def test_root_last_words_and_their_edges_are_those_of_the_tree(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(n,) for n in SIZES], "items long")

    found = {row["items"]: row for row in with_trees(rows).collect()}

    for n in SIZES:
        root = TREE.root_level(n)
        assert found[n]["root"] == root
        assert found[n]["lasts"][: root + 1] == [TREE.last(level, n) for level in range(root + 1)]
        edges = [TREE.full & ~TREE.residue(level, TREE.last(level, n), n) for level in range(root + 1)]
        assert found[n]["edges"][: root + 1] == [signed(edge) for edge in edges]
        assert len(found[n]["lasts"]) == TOP + 1


def test_a_batch_without_items_has_no_root(spark: SparkSession) -> None:
    (row,) = with_trees(spark.createDataFrame([(0,)], "items long")).collect()
    assert row["root"] is None


def places(spark: SparkSession, items: int, closed: bool, *words: tuple[int, int, int]) -> list[dict]:
    """The places of words, given by level, number and value, in a batch of so many items."""
    rows = [(items, 5 if closed else None, level, number, signed(word)) for level, number, word in words]
    batch = "items long, closed_at long, level int, number long, bits long"
    return [row.asDict() for row in with_places(with_trees(spark.createDataFrame(rows, batch))).collect()]


def test_words_are_inside_up_to_the_root_and_the_last_of_their_level(spark: SparkSession) -> None:
    words = [(0, 78), (0, 79), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)]
    found = places(spark, 5_000, True, *((level, number, TREE.full) for level, number in words))
    assert [row["inside"] for row in found] == [True, False, True, False, True, False, False]
    assert [row["existing"] % 2**64 for row in found] == [255, 0, 2**15 - 1, 0, 3, 0, 0]


@pytest.mark.parametrize(("closed", "settled"), [(True, [True, False, True]), (False, [False, False, True])])
def test_the_last_word_settles_at_its_residue_once_the_batch_is_closed(
    spark: SparkSession, closed: bool, settled: list[bool]
) -> None:
    residue = TREE.residue(0, 78, 5_000)
    found = places(spark, 5_000, closed, (0, 78, residue), (0, 78, residue | 1), (0, 3, 0))
    assert [row["settled"] for row in found] == settled


def test_only_bits_that_stand_for_children_count_as_cleared(spark: SparkSession) -> None:
    (row,) = places(spark, 5_000, True, (0, 78, TREE.full ^ 1 ^ 1 << 9))
    assert row["cleared"] == 1


def test_a_block_is_what_lies_below_a_topmost_word_of_its_tier(spark: SparkSession) -> None:
    found = places(spark, 2**40, True, *((level, 64**2 * 3 + 70, TREE.full) for level in range(2 * TIER)))
    number = 64**2 * 3 + 70
    assert [(row["tier"], row["block"]) for row in found] == [
        (0, number // 64**2),
        (0, number // 64),
        (0, number),
        (1, number // 64**2),
        (1, number // 64),
        (1, number),
    ]
