"""Checks of what a call carries: the value itself, or an error that names it and its bounds."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fanin.domain import limits
from fanin.errors import InvalidRequest, RequestTooLarge


@pytest.mark.parametrize("values", [[], [1, 2, 3], "abc", {"a": 1}])
def test_as_many_as_allowed_are_taken(values: Any) -> None:
    limits.at_most("things", values, 3)


def test_one_more_says_how_many_there_were_and_may_be() -> None:
    with pytest.raises(RequestTooLarge, match="4 things in one call; send at most 3"):
        limits.at_most("things", [1, 2, 3, 4], 3)


@pytest.mark.parametrize("value", [-2, 0, 7])
def test_a_whole_number_is_returned(value: int) -> None:
    assert limits.whole("n", value, -2, 7) == value


@pytest.mark.parametrize("value", [-3, 8, 1.0, "1", None, True, [1], 10**400])
def test_anything_else_than_a_whole_number_in_bounds_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"n must be a whole number from -2 to 7, not '.{1,32}'$"):
        limits.whole("n", value, -2, 7)


@pytest.mark.parametrize("value", ["", "abc", "äöü", "\u2602\u2602"])
def test_text_is_returned(value: str) -> None:
    assert limits.text("key", value, 3) == value


@pytest.mark.parametrize(("value", "least"), [("abcd", 0), ("", 1), (None, 0), (b"a", 0), (5, 0)])
def test_anything_else_than_text_of_its_length_is_refused(value: Any, least: int) -> None:
    with pytest.raises(InvalidRequest, match=f"key must be text of {least} to 3 characters"):
        limits.text("key", value, 3, least=least)


def test_pairs_have_the_bounds_of_metadata() -> None:
    limits.pairs("attributes", {str(i).zfill(64): "v" * 256 for i in range(16)})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({str(i): "" for i in range(17)}, "attributes may have at most 16 pairs"),
        ({"": "v"}, "a key of attributes must be text of 1 to 64"),
        ({"k" * 65: "v"}, "a key of attributes"),
        ({"k": "v" * 257}, r"attributes\['k'\] must be text of 0 to 256"),
        ({"k": 5}, r"attributes\['k'\]"),
    ],
)
def test_pairs_out_of_bounds_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        limits.pairs("attributes", values)


@pytest.mark.parametrize("value", ["a", "7", "a.b_c:d-e", "Z" * 10])
def test_a_name_is_returned(value: str) -> None:
    assert limits.name("topic", value, 10) == value


@pytest.mark.parametrize("value", ["", "-a", ".a", "a b", "a/b", "ä", "a\n", "Z" * 11, None, 5])
def test_anything_else_than_a_name_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="topic must be 1 to 10 letters, digits"):
        limits.name("topic", value, 10)


@pytest.mark.parametrize(("name", "good"), [("a", True), ("a" * 48, True), ("a" * 49, False), ("-a", False)])
def test_names_of_buffers_fit_in_names_of_queues(name: str, good: bool) -> None:
    assert bool(re.fullmatch(limits.BUFFER_NAME, name)) is good
