"""The size of an item, by the rules of DynamoDB."""

import pytest

from bench.dynamodb import _size


def test_an_item_is_its_names_and_its_values_by_the_rules_of_the_developer_guide():
    # Given a name of 7 bytes with a text of 5, one of 4 with 5 digits, one of 4 with a set of 1 and 2 digits
    item = {"word_id": {"S": "1/0/é"}, "word": {"N": "12345"}, "done": {"NS": ["7", "63"]}}
    # Then é takes two bytes, two digits take one and each number one more, the set 3 and each element 1
    assert _size(item) == (7 + 6) + (4 + 3 + 1) + (4 + 3 + (1 + 2) + (1 + 2))


def test_an_attribute_of_an_unknown_type_is_not_guessed():
    with pytest.raises(AssertionError, match="type BOOL"):
        _size({"done": {"BOOL": True}})
