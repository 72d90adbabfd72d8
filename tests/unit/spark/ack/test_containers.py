"""Containers of pages: packed and unpacked, they are the same items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.spark.ack import page_builder
from fanin.spark.ack.page_builder import PAGE, PAGE_BYTES, SPARSE, WORDS, bitmaps, popcount


def packed(*pages: list[int]) -> list[tuple[int, bytes]]:
    flags = np.zeros(len(pages) * PAGE, bool)
    for number, offsets in enumerate(pages):
        flags[[number * PAGE + offset for offset in offsets]] = True
    return list(page_builder.containers(flags))


def offsets_of(words: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()


@given(st.lists(st.sets(st.integers(0, PAGE - 1), max_size=30), min_size=1, max_size=3))
def test_pages_unpack_to_the_items_that_were_packed(pages: list[set[int]]) -> None:
    found = packed(*map(sorted, pages))

    unpacked = bitmaps([bits for _, bits in found])
    assert {number: set(offsets_of(row)) for (number, _), row in zip(found, unpacked, strict=True)} == {
        number: page for number, page in enumerate(pages) if page
    }


def test_dense_pages_are_bitmaps_and_sparse_ones_are_offsets() -> None:
    (_, sparse), (_, dense) = packed(list(range(SPARSE - 1)), list(range(SPARSE)))

    assert sparse == np.arange(SPARSE - 1, dtype="<u2").tobytes()
    assert len(dense) == PAGE_BYTES
    assert dense[: SPARSE // 8] == b"\xff" * (SPARSE // 8)
    assert not any(dense[SPARSE // 8 :])


def test_containers_of_both_kinds_unpack_in_their_order() -> None:
    pages = [list(range(SPARSE)), [PAGE - 1], list(range(5, 5 + SPARSE)), [0, 63, 64]]

    words = bitmaps([bits for _, bits in packed(*pages)])

    assert words.shape == (4, WORDS)
    assert [offsets_of(row) for row in words] == pages


def test_numpy_1_counts_bits_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a numpy that cannot count bits
    words = np.array([[0, 1, 2**63, 2**64 - 1], [7, 2**32, 2**48 - 1, 5]], np.uint64)
    known = popcount(words).tolist()
    monkeypatch.delattr(np, "bitwise_count", raising=False)

    # Then the table says the same
    assert popcount(words).tolist() == known == [[0, 1, 1, 64], [3, 1, 48, 2]]
