"""Names that look like patterns."""

from __future__ import annotations

import pytest

from fanin.spark.runtime.places import escaped, is_pattern


@pytest.mark.parametrize("path", ["a*", "a?", "[1]", "{a,b}", "a\\b"])
def test_a_path_with_signs_of_a_pattern_is_one_unless_they_are_escaped(path: str) -> None:
    assert is_pattern(path)
    signs = [letter for letter in escaped(path) if letter == "\\"]
    assert len(signs) == sum(letter in "*?[]{}" or 2 * (letter == "\\") for letter in path)


def test_any_other_path_is_taken_as_it_is() -> None:
    path = "s3://lake/a b/ü=1/x,y (2).csv"
    assert not is_pattern(path)
    assert escaped(path) == path
