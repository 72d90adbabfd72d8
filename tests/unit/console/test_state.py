"""What all pages of one console share, and what they read in an address."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from fanin.console.state import Cache, cursor_in, id_in, natural
from fanin.errors import BatchNotFound, InvalidRequest


def test_a_browser_without_a_session_gets_one_where_none_is_needed(browse) -> None:
    # Given a console whose callers somebody else has checked
    browser = browse(cookie="__Host-fanin")
    # When a browser comes, and comes again
    first, second = browser.get("/"), browser.get("/")
    # Then it got a cookie once, so that its forms can be told from those of others
    assert "__Host-fanin=" in first.headers["set-cookie"]
    assert "set-cookie" not in second.headers


def test_a_value_is_made_once() -> None:
    cache = Cache()
    assert cache.get("a", list) is cache.get("a", list)
    assert cache.get("a", list) is not cache.get("b", list)


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    # Given room for two
    cache = Cache(2)
    first, second = cache.get(1, list), cache.get(2, list)
    # When the first is used, and a third comes
    cache.get(1, list)
    cache.get(3, list)
    # Then the second is gone
    assert len(cache) == 2
    assert cache.get(1, list) is first
    assert cache.get(2, list) is not second


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
