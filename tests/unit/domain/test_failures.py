"""What failures have in common."""

from __future__ import annotations

import pytest

from fanin.domain.failures import MAX_ERROR, error_of


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("", ""),
        ("the disk is full", "the disk is full"),
        ("row 812 of '/data/in.csv' has no 'price'", "row <n> of <text> has no <text>"),
        ("KeyError: 'abc'", "KeyError: <text>"),
        ("no answer after 3.5 s from https://a.example/b?c=1", "no answer after <n> s from <url>"),
        ("cannot open /var/lib/in/7.json: not found", "cannot open <path>: not found"),
        ("object at 0x7f3a of deadbeef12", "object at <id> of <id>"),
        ("order 0190c1f2-0000-7000-8000-00000000abcd is void", "order <id> is void"),
        ("it's a pity, isn't it", "it's a pity, isn't it"),
        ("9,500.25 of 10:30", "<n> of <n>"),
    ],
)
def test_numbers_ids_quotes_paths_and_urls_are_replaced(reason: str, error: str) -> None:
    assert error_of(reason) == error


def test_an_error_is_cut() -> None:
    assert error_of("a" * 1000) == "a" * MAX_ERROR
