from __future__ import annotations

import pytest

from fanin.console.options import Options
from fanin.console.rendering import Templates, compact, day, number, percent, when

NOON = 1_795_435_200_000


@pytest.fixture
def templates() -> Templates:
    return Templates(Options(root="/console"), lambda: NOON)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "\u2013"),
        (0, 10, "0 %"),
        (10, 10, "100 %"),
        (1, 10**9, "< 0.1 %"),
        (10**9 - 1, 10**9, "> 99.9 %"),
        (1, 3, "33.3 %"),
    ],
)
def test_a_share_is_never_all_or_nothing_unless_it_is(part, whole, text) -> None:
    assert percent(part, whole) == text


def test_figures_are_grouped() -> None:
    assert (number(1_234_567), number(None)) == ("1,234,567", "\u2013")
    assert number(2**80 - 1) == "1,208,925,819,614,629,174,706,175"  # a total may be so large
    assert number(12.6) == "13"
    assert [compact(value) for value in (7, 1_250, 2e6, 1.07e9)] == ["7", "1.25 k", "2 M", "1.07 G"]


def test_a_time_is_an_element_with_its_date() -> None:
    assert day(NOON) == "2026-11-23 12:00:00 UTC"
    assert when(NOON) == '<time datetime="2026-11-23T12:00:00Z">2026-11-23 12:00:00 UTC</time>'
    assert when(None) == "\u2013"


def test_addresses_are_quoted_segment_by_segment(templates) -> None:
    assert templates.url() == "/console"
    assert templates.url("buffers", "a/b?c#d%\u00e9") == "/console/buffers/a%2Fb%3Fc%23d%25%C3%A9"
    assert (
        templates.url("batches", search="a=b&c", cursor=None, kind="") == "/console/batches?search=a%3Db%26c"
    )


def test_whatever_is_not_markup_is_escaped(templates) -> None:
    html = templates.macro("parts.html", "count", 5, False, '"><script>') + templates.macro(
        "parts.html", "nothing", "<img onerror=alert(1)>"
    )
    assert "<script>" not in html
    assert "<img" not in html
