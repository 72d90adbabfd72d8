"""Building pages: every item once, every repeat given, in any order and spread, and within bounded memory."""

import tracemalloc
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.spark.ack.page_builder import PAGE, PageBuilder, Rows, WordPage, bitmaps, popcount


def decoded(pages: list[WordPage]) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for page in pages:
        bits = np.unpackbits(bitmaps([page.bits])[0].view(np.uint8), bitorder="little")
        found.update((page.key, page.number * PAGE + offset) for offset in np.flatnonzero(bits).tolist())
    return found


def told(repeats: Iterable[Rows]) -> list[tuple[int, int]]:
    return [pair for keys, ordinals in repeats for pair in zip(keys.tolist(), ordinals.tolist(), strict=True)]


@st.composite
def chunks(draw: st.DrawFn) -> list[tuple[list[int], list[int]]]:
    """Some chunks of keys and ordinals: dense or sparse, near to zero or far from it, with repeats."""
    made = []
    for _ in range(draw(st.integers(1, 4))):
        low = draw(st.sampled_from([0, 63, PAGE - 3, 10**9]))
        span = draw(st.sampled_from([3, 200, 3 * PAGE, 10**7]))
        ordinals = draw(st.lists(st.integers(low, low + span), min_size=1, max_size=60))
        if draw(st.booleans()):
            run = range(low, low + draw(st.integers(1, 6_000)))
            ordinals = [*ordinals, *run]
        most = draw(st.integers(0, 2))
        made.append(([n % (most + 1) for n in range(len(ordinals))], ordinals))
    return made


@given(made=chunks(), room=st.sampled_from([PAGE, 4 * PAGE, 1 << 27]))
def test_pages_and_repeats_are_all_that_came(made, room):
    # Given chunks of ordinals of some keys
    builder = PageBuilder(room=room)
    came: Counter[tuple[int, int]] = Counter()
    repeats: Counter[tuple[int, int]] = Counter()
    # When they are added, the keys one by one where there is one only
    for keys, ordinals in made:
        came.update(zip(keys, ordinals, strict=True))
        single = keys[0] if len(set(keys)) == 1 else np.array(keys, np.int64)
        repeats.update(told(builder.add(single, np.array(ordinals, np.int64))))
    repeats.update(told(builder.flush()))
    pages = decoded(builder.take())
    # Then an item is in as many pages as its rows are not repeats
    assert pages.keys() == came.keys()
    assert pages + repeats == came


def test_without_room_for_all_items_each_row_is_in_a_page_or_a_repeat():
    # Given chunks of many slices, with repeats near and far
    rng = np.random.default_rng(7)
    ordinals = np.concatenate([rng.integers(0, 9 * PAGE, 30_000), np.arange(5 * PAGE), np.arange(100)])
    builder = PageBuilder(room=3 * PAGE)

    repeats: Counter[tuple[int, int]] = Counter()
    for part in np.array_split(ordinals, 5):
        repeats.update(told(builder.add(0, part)))
    repeats.update(told(builder.flush()))

    assert decoded(builder.take()) + repeats == Counter((0, ordinal) for ordinal in ordinals.tolist())
    assert repeats


def test_repeats_do_not_wait_for_the_end():
    # Given an item that comes twice in a chunk, when as many come after it as wait at most
    builder = PageBuilder()
    chunk = np.random.default_rng(3).permutation(4 * PAGE)
    chunk[1] = chunk[0]

    found = told(builder.add(0, chunk))
    # Then it is told before anything is flushed
    assert found == [(0, chunk[0])]


@pytest.mark.parametrize("repeats", [0, 1])
def test_a_flag_takes_at_most_two_bytes(repeats):
    # Given as many items as there is room for, in no order, and perhaps one of them twice
    room = 64 * PAGE
    parts = np.array_split(np.random.default_rng(0).permutation(room), 16)
    parts[9][:repeats] = parts[9][1]
    builder = PageBuilder(room=room)
    # When they are added
    tracemalloc.start()
    found = [pair for part in parts for pair in told(builder.add(0, part))] + told(builder.flush())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Then memory stays below what docs/how-to/spark/ack.md promises
    assert len(found) == repeats
    assert peak < 2 * room


def test_memory_does_not_grow_with_the_share_of_a_task():
    # Given shares of 4 and of 64 chunks, dense and spread, whose pages are taken as they come out
    def peak(chunks: int) -> int:
        rng = np.random.default_rng(5)
        builder = PageBuilder(room=32 * PAGE)
        tracemalloc.start()
        for _chunk in range(chunks):
            for key, pages in (0, 64), (1, 8):
                for _ in builder.add(key, rng.integers(0, pages * PAGE, 1 << 15)):
                    pass
            builder.take()
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(64) < 1.1 * peak(4)


@pytest.mark.parametrize("order", [1, -1])
def test_consecutive_ordinals_find_repeats_among_those_before_and_after(order):
    # Given ordinals in no order, some of them consecutive to others, and a run over all of them between them
    before, after = np.array([5, 300, 17]), np.array([4, 999, 4, 1_000])
    run = np.arange(1_000)
    parts = [before, run, after][::order]
    builder = PageBuilder()
    # When they are added, in this order or the other
    repeats = [int(o) for part in parts for _, found in builder.add(7, part) for o in found]
    repeats += [int(o) for _, found in builder.flush() for o in found]
    # Then every occurrence but one is a repeat, and all are in the pages
    assert sorted(repeats) == [4, 4, 5, 17, 300, 999]
    (page,) = builder.take()
    assert np.frombuffer(page.bits, "<u2").tolist() == list(range(1_001))


@pytest.mark.parametrize("last", range(8))
def test_the_first_and_last_of_consecutive_ordinals_are_known_afterwards(last):
    # Given consecutive ordinals that begin and end anywhere in a byte of flags
    first, last = 7 - last, 16 + last
    builder = PageBuilder()
    assert not told(builder.add(7, np.arange(first, last + 1)))
    # When both ends come again, then they are repeats
    found = [*told(builder.add(7, np.array([last, first]))), *told(builder.flush())]
    assert sorted(found) == [(7, first), (7, last)]
    assert decoded(builder.take()) == Counter((7, ordinal) for ordinal in range(first, last + 1))


def test_numpy_1_counts_bits_alike(monkeypatch):
    # Given a numpy that cannot count bits
    words = np.array([[0, 1, 2**63, 2**64 - 1], [7, 2**32, 2**48 - 1, 5]], np.uint64)
    known = popcount(words).tolist()
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    # Then the table says the same
    assert popcount(words).tolist() == known == [[0, 1, 1, 64], [3, 1, 48, 2]]
