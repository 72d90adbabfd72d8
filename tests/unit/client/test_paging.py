"""The pages of an answer."""

from __future__ import annotations

from types import SimpleNamespace

from fanin.client.paging import follow_cursor


def test_pages_are_followed_to_the_last_even_over_an_empty_one():
    answers = {None: ([1], "a"), "a": ([], "b"), "b": ([2, 3], None)}

    def read(cursor):
        things, following = answers[cursor]
        return SimpleNamespace(things=things, cursor=following)

    assert [page.things for page in follow_cursor(read)] == [[1], [], [2, 3]]


def test_a_page_is_read_when_it_is_asked_for():
    asked = []

    def read(cursor):
        asked.append(cursor)
        return SimpleNamespace(cursor="more")

    endless = follow_cursor(read)
    next(endless)
    next(endless)
    assert asked == [None, "more"]
