"""Sizes of items by the rules of DynamoDB, and figures held against their bounds."""

import pytest

from bench import single
from bench.dynamodb import _size
from bench.figures import Figure, worst


def test_an_order_that_leaves_an_item_out_is_refused(monkeypatch):
    monkeypatch.setattr(single, "ITEMS", 1_024)
    with pytest.raises(AssertionError, match="all items are acknowledged, but the batch is closed"):
        single._measure("short", lambda: range(1_023))


def test_an_item_is_its_names_and_its_values_by_the_rules_of_the_developer_guide():
    # Given a name of 7 bytes with a text of 5, one of 4 with 5 digits, one of 4 with a set of 1 and 2 digits
    item = {"word_id": {"S": "1/0/é"}, "word": {"N": "12345"}, "done": {"NS": ["7", "63"]}}
    # Then é takes two bytes, two digits take one and each number one more, the set 3 and each element 1
    assert _size(item) == (7 + 6) + (4 + 3 + 1) + (4 + 3 + (1 + 2) + (1 + 2))


def test_an_attribute_of_an_unknown_type_is_not_guessed():
    with pytest.raises(AssertionError, match="type BOOL"):
        _size({"done": {"BOOL": True}})


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
