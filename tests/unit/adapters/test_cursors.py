"""Cursors: opaque text that only its own listing accepts."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.adapters import cursors
from fanin.errors import InvalidRequest


@given(st.text(max_size=50), st.lists(st.integers(0, 2**53 - 1), min_size=1, max_size=3))
def test_a_position_reads_back_in_its_listing(listing: str, position: list[int]) -> None:
    cursor = cursors.encode(listing, *position)

    assert cursors.decode(listing, cursor, {len(position)}) == tuple(position)
    with pytest.raises(InvalidRequest, match="not from this listing"):
        cursors.decode(f"{listing}!", cursor, {len(position)})


@given(st.text(max_size=50), st.text(min_size=1, max_size=50))
def test_a_name_reads_back_in_its_listing(listing: str, name: str) -> None:
    cursor = cursors.encode_name(listing, name)

    assert cursors.decode_name(listing, cursor) == name
    with pytest.raises(InvalidRequest, match="not from this listing"):
        cursors.decode_name(f"{listing}!", cursor)


def test_a_cursor_may_stand_in_a_url_as_it_is() -> None:
    for n in range(100):
        assert set(cursors.encode_name("l", chr(200 + n))) <= set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        )


def packed(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "nonsense",
        "ä",
        "=" * 8,
        packed("list"),
        packed([]),
        packed({"listing": 1}),
        packed(["list"]),
        packed(["list", 1, 2]),
        packed(["list", -1]),
        packed(["list", 2**53]),
        packed(["list", True]),
        packed(["list", 1.0]),
        packed(["list", "1"]),
        packed([["list"], 1]),
        "A" * 2000,
    ],
)
def test_anything_else_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="start again without a cursor"):
        cursors.decode("list", cursor, {1})


@pytest.mark.parametrize("parts", [["list"], ["list", ""], ["list", 1], ["list", "a", "b"], ["other", "a"]])
def test_anything_else_than_a_name_is_refused(parts: list[object]) -> None:
    with pytest.raises(InvalidRequest, match="start again without a cursor"):
        cursors.decode_name("list", packed(parts))


def test_a_refusal_quotes_no_more_than_the_beginning() -> None:
    with pytest.raises(InvalidRequest) as caught:
        cursors.decode("list", "A" * 2000, {1})

    assert len(str(caught.value)) < 150
