"""The tree in SQL, against the tree of the domain."""

import pytest
from pyspark.sql import SparkSession

from fanin.domain.tree import Tree
from fanin.spark.auditing.progress import TOP, with_trees

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
