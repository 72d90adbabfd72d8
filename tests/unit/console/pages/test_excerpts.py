from __future__ import annotations

import pytest
from markupsafe import escape

from fanin.console.pages.excerpts import Excerpt, beginning, excerpts, shown_json


def html(text: str) -> int:
    return len(str(escape(text)).encode())


@pytest.mark.parametrize(
    ("text", "most", "shown", "size"),
    [
        ("ok", 10, "ok", 2),
        ("x" * 5000, 4096, "x" * 4096, 5000),
        ("ü" * 10, 5, "üü", 20),  # bytes are counted, and no character is cut in two
    ],
)
def test_a_long_text_is_cut_and_says_how_long_it_is(text, most, shown, size) -> None:
    (one,) = excerpts([text], most=most, room=10_000)
    assert (one.text, one.size, one.cut) == (shown, size, shown != text)


@pytest.mark.parametrize("character", [*"a&\"'<>\n\x0b", "ü", "€", "😀"])
def test_the_room_is_that_of_the_html(character) -> None:
    found = excerpts([character * 500] * 7, most=400, room=1000)
    assert sum(html(one.text) for one in found) <= 1000


def test_what_short_texts_do_not_need_is_for_those_that_follow() -> None:
    *_, last = excerpts(["x", "y", "z" * 500], most=1000, room=300)
    assert len(last.text) == 298


def test_each_text_has_its_share_whatever_came_before() -> None:
    first, second = excerpts(["x" * 500, "y" * 500], most=1000, room=300)
    assert (len(first.text), len(second.text)) == (150, 150)


def test_half_a_surrogate_pair_does_not_break_the_page() -> None:
    (one,) = excerpts(["a\ud800b"], most=100, room=100)
    assert one.text == "a\\ud800b"


def test_the_length_is_that_of_the_whole_text() -> None:
    assert Excerpt("", 1023, cut=True).length == "1023 bytes"
    assert Excerpt("", 1536, cut=True).length == "1.5 KB"
    assert Excerpt("", 200 * 1024, cut=True).length == "200.0 KB"


def test_json_is_shown_with_its_own_characters_or_says_that_it_cannot_be_written() -> None:
    assert shown_json({"a": "ü\n"}) == '{"a": "ü\\n"}'
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown_json(deep).startswith("(not shown:")


def test_a_beginning_is_cut_by_characters_and_by_what_it_takes_in_a_page() -> None:
    assert beginning("abc", 9, escaped=9) == ("abc", 3)
    assert not beginning("abc", 9, escaped=9).cut
    assert beginning("abcdef", 4, escaped=9) == ("abcd", 6)
    cut = beginning("&" * 100, 100, escaped=50)
    assert cut.cut
    assert 0 < len(cut.text) <= 10
