"""What failures have in common."""

from __future__ import annotations

from time import process_time

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


@pytest.mark.parametrize("text", ["a", "0f", "a.b+", "'", "a:", "/a"])
def test_a_long_reason_takes_as_long_as_its_length(text: str) -> None:
    """One that is a single word, such as a digest, must not hold up the listing of thousands."""

    def seconds(length: int) -> float:
        reason = (text * length)[:length]

        def once() -> float:
            begun = process_time()
            for _ in range(20):
                error_of.__wrapped__(reason)
            return process_time() - begun

        return min(once() for _ in range(5))

    assert seconds(4_096) < 40 * seconds(256)
