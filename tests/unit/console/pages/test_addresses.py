from __future__ import annotations

import pytest
from starlette.requests import Request

from fanin.console.pages.addresses import cursor_in, id_in, natural
from fanin.errors import BatchNotFound, InvalidRequest


def asked(text: str) -> Request:
    return Request({"type": "http", "headers": [], "path_params": {"batch_id": text}})


def test_an_id_is_a_number() -> None:
    assert id_in(asked("9007199254740991")) == 2**53 - 1


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "٣", "²", " 1", "9" * 17, "9" * 5000])
def test_nothing_else_is_an_id(text) -> None:
    with pytest.raises(BatchNotFound, match="not an id"):
        id_in(asked(text))


def test_a_whole_number_may_be_left_out() -> None:
    assert natural("level", "3") == 3
    assert natural("level", "") is natural("level", None) is None


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "٣", "²", " 1", "9" * 17])
def test_nothing_else_is_a_whole_number(text) -> None:
    with pytest.raises(InvalidRequest, match="level is a whole number"):
        natural("level", text)


@pytest.mark.parametrize(("query", "cursor"), [(b"", None), (b"cursor=", None), (b"cursor=a%20b", "a b")])
def test_a_listing_begins_at_its_cursor(query, cursor) -> None:
    assert cursor_in(Request({"type": "http", "headers": [], "query_string": query})) == cursor
