"""Cursors come from callers, so they may be anything at all: forged, cut, of another listing or release."""

import base64
import json
import re
from typing import Any

import pytest

from fanin.adapters import cursors
from fanin.errors import InvalidRequest

LISTING = "batches open"


def forged(document: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


@pytest.mark.parametrize("position", [(0,), (7,), (3, 1_790_000_000_000, 2**53 - 1)])
def test_a_position_reads_back(position):
    assert cursors.decode(LISTING, cursors.encode(LISTING, *position), {1, 3}) == position


@pytest.mark.parametrize("name", ["a", "item/007", "☂ umbrella", '"quoted"\n'])
def test_a_name_reads_back(name):
    assert cursors.decode_name(LISTING, cursors.encode(LISTING, name)) == name


@pytest.mark.parametrize("number", [1, 2, 3])  # of which one needs no padding
def test_a_cursor_needs_no_escape_in_a_query_string(number):
    assert re.fullmatch(r"[\w-]+", cursors.encode(LISTING, "☂?>" * number), re.ASCII)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "☂",
        "A" * 1025,
        "[" * 1000,
        forged([]),
        forged({LISTING: 7}),
        forged([LISTING]),
        forged([[LISTING], 7]),
        forged(["batches closed", 7]),
        forged([LISTING, [7]]),
        cursors.encode(LISTING, 7)[:-2],
        base64.urlsafe_b64encode(b"[" * 700).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        base64.b64encode(b'["batches open",7]\xfb\xff').decode(),
    ],
)
def test_what_no_listing_gave_is_refused(cursor):
    with pytest.raises(InvalidRequest, match="start again without a cursor"):
        cursors.decode(LISTING, cursor, {1})
    with pytest.raises(InvalidRequest, match="start again without a cursor"):
        cursors.decode_name(LISTING, cursor)


@pytest.mark.parametrize(
    "position", [[-1], [1.0], [True], ["1"], ["name"], [2**53], [1, 2], [1, 2, 3, 4], [1, 2, None]]
)
def test_a_forged_position_is_refused(position):
    with pytest.raises(InvalidRequest):
        cursors.decode(LISTING, forged([LISTING, *position]), {1, 3})


@pytest.mark.parametrize("name", [[""], [7], [None], ["a", "b"], [["a"]]])
def test_a_forged_name_is_refused(name):
    with pytest.raises(InvalidRequest):
        cursors.decode_name(LISTING, forged([LISTING, *name]))


def test_a_forged_name_outside_of_the_listing_is_refused():
    cursor = cursors.encode("parts 71 item/", "other/1")

    with pytest.raises(InvalidRequest):
        cursors.decode_name("parts 71 item/", cursor, "item/")


def test_nested_brackets_are_refused_however_deep_the_stack_is_already():
    def at(depth: int) -> None:
        if depth:
            at(depth - 1)
        else:
            cursors.decode(LISTING, base64.urlsafe_b64encode(b"[" * 760).decode(), {1})

    with pytest.raises(InvalidRequest):
        at(400)


def test_a_cursor_is_of_one_listing_and_of_one_kind():
    position, name = cursors.encode(LISTING, 7), cursors.encode(LISTING, "7")

    for use in (
        lambda: cursors.decode("batches closed", position, {1}),
        lambda: cursors.decode_name("batches closed", name),
        lambda: cursors.decode(LISTING, name, {1}),
        lambda: cursors.decode_name(LISTING, position),
    ):
        with pytest.raises(InvalidRequest):
            use()


def test_a_position_has_a_size_that_the_listing_knows():
    longer = cursors.encode(LISTING, 3, 17, 8)

    assert cursors.decode(LISTING, longer, {1, 3}) == (3, 17, 8)
    with pytest.raises(InvalidRequest):
        cursors.decode(LISTING, longer, {1, 2})


def test_the_refusal_quotes_no_more_than_64_characters_of_it():
    with pytest.raises(InvalidRequest) as caught:
        cursors.decode(LISTING, "y" * 65, {1})

    assert f"'{'y' * 64}'" in str(caught.value)
    assert "y" * 65 not in str(caught.value)


def test_a_name_that_no_table_can_store_is_refused():
    with pytest.raises(InvalidRequest, match="is not from this listing"):
        cursors.decode_name("there", cursors.encode("there", "a\ud800"))


def test_a_listing_of_a_long_text_has_cursors_of_their_usual_length():
    long = "☂" * 256
    listing = cursors.listing_of("batches of", long)

    assert cursors.decode(listing, cursors.encode(listing, 2**53 - 1), {1}) == (2**53 - 1,)
    with pytest.raises(InvalidRequest, match="cursor"):
        cursors.decode(cursors.listing_of("batches of", long + "☂"), cursors.encode(listing, 8), {1})


def test_the_cursors_of_a_user_key_stay_as_they_are():
    """Both releases read them while a stack is updated."""
    listing = cursors.listing_of("batches of", "catalog-42")

    assert listing == "batches of 83601cf870cb62f6910c285cb7cea921"
