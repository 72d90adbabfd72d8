"""A figure and its bound."""

import pytest

from bench.figures import Figure, worst


@pytest.mark.parametrize(
    ("figure", "ok", "must_be"),
    [
        (Figure("writes", 1.02, at_most=1.02), True, "≤ 1.02"),
        (Figure("writes", 1.03, at_most=1.02), False, "≤ 1.02"),
        (Figure("failed writes", 1, at_most=0), False, "0"),
        (Figure("ids", 1_000_000, at_least=1_000_000), True, "≥ 1,000,000"),
        (Figure("ids", 999_999, at_least=1_000_000), False, "≥ 1,000,000"),
        (Figure("for information", 10**9), True, ""),
    ],
)
def test_a_figure_is_held_against_its_bound(figure, ok, must_be):
    assert (figure.ok, figure.must_be) == (ok, must_be)


def test_the_worst_of_many_is_the_highest_under_an_upper_bound_and_the_lowest_over_a_lower_one():
    assert worst(Figure("w", value, at_most=9) for value in (1, 3, 2)).measured == 3
    assert worst(Figure("w", value, at_least=9) for value in (2, 1, 3)).measured == 1
