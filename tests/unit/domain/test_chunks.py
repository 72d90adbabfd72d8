"""Chunks of a stream."""

from __future__ import annotations

from itertools import count, islice, pairwise

from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.chunks import chunks


@given(st.lists(st.integers(0, 12)), st.integers(1, 5), st.integers(1, 20))
def test_pages_keep_everything_in_order_and_within_bounds(sizes, most, most_bytes):
    # When
    cut = list(chunks(sizes, max_items=most, size_of=lambda size: size, max_bytes=most_bytes))
    # Then
    assert [size for page in cut for size in page] == sizes
    assert all(0 < len(page) <= most for page in cut)
    assert all(sum(page) <= most_bytes or len(page) == 1 for page in cut)
    # And: no page could have taken the first thing of the next
    for page, after in pairwise(cut):
        assert len(page) == most or sum(page) + after[0] > most_bytes


def test_a_stream_without_end_is_read_one_page_ahead_at_most():
    numbers = count()
    assert list(islice(chunks(numbers, max_items=3), 2)) == [[0, 1, 2], [3, 4, 5]]
    assert next(numbers) <= 7
