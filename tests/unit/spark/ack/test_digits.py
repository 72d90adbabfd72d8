"""Numbers at the ends of texts, against Python's own parsing."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.spark.ack.numpy_items import canonical_numbers

HEAD = b"head:56:"
NUMBERS = st.one_of(
    st.integers(0, 10**11).map(lambda number: str(number).encode()),
    st.integers(0, 10**10 - 1).map(lambda number: b"%010d" % number),
)


def read(tails: list[bytes], offset: type[np.int32 | np.int64] = np.int32) -> list[int] | None:
    texts = [HEAD + tail for tail in tails]
    offsets = np.cumsum([0, *map(len, texts)]).astype(offset)
    numbers = canonical_numbers(b"".join(texts), offsets, len(HEAD))
    return None if numbers is None else [int(number) for number in numbers]


def expected(tails: list[bytes]) -> list[int] | None:
    canonical = all(re.fullmatch(rb"0|[1-9][0-9]{0,9}", tail) for tail in tails)
    return [int(tail) for tail in tails] if canonical else None


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.sampled_from([np.int32, np.int64]))
def test_numbers_are_those_that_python_reads(tails: list[bytes], offset: type[np.int32 | np.int64]) -> None:
    assert read(tails, offset) == expected(tails)


@given(st.lists(st.integers(0, 10**10 - 1), min_size=1, max_size=40))
def test_numbers_of_one_to_ten_digits_stand_side_by_side(numbers: list[int]) -> None:
    assert read([str(number).encode() for number in numbers]) == numbers


@given(st.binary(min_size=1, max_size=10))
def test_no_bytes_but_digits_are_a_number(tail: bytes) -> None:
    assert read([b"7", tail, b"1234567890"]) == expected([b"7", tail, b"1234567890"])


@pytest.mark.parametrize("digits", [1, 7, 8, 10])
def test_each_byte_at_each_place_is_a_digit_or_none(digits: int) -> None:
    for place in range(digits):
        for byte in range(256):
            tail = bytearray(b"1" * digits)
            tail[place] = byte
            assert read([bytes(tail)]) == expected([bytes(tail)])


@pytest.mark.parametrize("tail", [b"", b"00", b"01", b"0000000000", b"12345678901"])
def test_numbers_that_are_not_canonical_are_not_read(tail: bytes) -> None:
    assert read([b"5", tail]) is None
