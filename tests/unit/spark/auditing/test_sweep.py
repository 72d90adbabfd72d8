"""The sweep over blocks, against plain sets."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.spark.auditing.progress import TIER, Measured, measure_blocks

Word = tuple[int, int, int]  # batch, level, number

# Small numbers at both ends of a word and of a block, so that words meet their ancestors.
NUMBERS = {
    0: st.sampled_from([0, 1, 63, 64, 4095, 4096]),
    1: st.sampled_from([0, 1, 63, 64]),
    2: st.integers(0, 1),
}
RUN = st.tuples(st.integers(0, 63), st.integers(1, 64))
ITEMS = 64**3 * 2 - 37


@st.composite
def forests(draw: st.DrawFn) -> dict[Word, int]:
    """Words of three levels with some runs of cleared bits; the tables' keys are unique."""
    words: dict[Word, int] = {}
    for _ in range(draw(st.integers(0, 12))):
        level = draw(st.integers(0, 2))
        mask = 0
        for low, length in draw(st.lists(RUN, max_size=3)):
            mask |= ((1 << length) - 1 << low) % 2**64
        words[draw(st.integers(1, 2)), level, draw(NUMBERS[level])] = mask
    return words


def page(words: dict[Word, int], finished: set[Word], items: int = ITEMS) -> pa.RecordBatch:
    rows = sorted(
        words, key=lambda word: (word[0], word[1] // TIER, word[2] >> 6 * (TIER - 1 - word[1] % TIER))
    )
    masks = np.array([words[row] for row in rows], np.uint64).view(np.int64)
    return pa.RecordBatch.from_pydict(
        {
            "batch_id": pa.array([b for b, _, _ in rows], pa.int64()),
            "tier": pa.array([level // TIER for _, level, _ in rows], pa.int32()),
            "block": pa.array([n >> 6 * (TIER - 1 - level % TIER) for _, level, n in rows], pa.int64()),
            "level": pa.array([level for _, level, _ in rows], pa.int32()),
            "number": pa.array([n for _, _, n in rows], pa.int64()),
            "cleared": pa.array(masks),
            "finished": pa.array([row in finished for row in rows], pa.bool_()),
            "items": pa.array([items] * len(rows), pa.int64()),
        }
    )


def swept(pages: list[pa.RecordBatch]) -> dict[Measured, list[dict[str, int]]]:
    rows = [row for out in measure_blocks(iter(pages)) for row in out.to_pylist()]
    return {part: [row for row in rows if row["part"] == part] for part in Measured}


def intervals(word: Word, mask: int, items: int) -> list[tuple[int, int]]:
    """The items that each cleared bit stands for."""
    _, level, number = word
    size = 64**level
    bits = [bit for bit in range(64) if mask >> bit & 1]
    return [((number * 64 + bit) * size, min((number * 64 + bit + 1) * size, items)) for bit in bits]


@given(forests(), st.integers(1, 13))
@settings(max_examples=60)
def test_the_union_is_that_of_sets_however_the_pages_are_cut(words, size):
    # Given words, some of which lie below cleared bits, and every one of them finished
    whole = page(
        {word: mask for word, mask in words.items() if intervals(word, 1, ITEMS)[0][0] < ITEMS}, set(words)
    )
    pages = [whole.slice(at, size) for at in range(0, whole.num_rows, size)]
    # When they are swept
    found = swept(pages)
    # Then done, hulls and gaps are what counting cell by cell gives
    for batch in {word[0] for word in words}:
        done = np.zeros(ITEMS, bool)
        for word, mask in words.items():
            if word[0] == batch:
                for start, stop in intervals(word, mask, ITEMS):
                    done[start:stop] = True
        seen = np.zeros(ITEMS, bool)
        for hull in (row for row in found[Measured.HULL] if row["batch_id"] == batch):
            assert not seen[hull["start"] : hull["stop"]].any()
            assert done[hull["start"]]
            assert done[hull["stop"] - 1]
            seen[hull["start"] : hull["stop"]] = True
            assert hull["done"] == done[hull["start"] : hull["stop"]].sum()
        for gap in (row for row in found[Measured.GAP] if row["batch_id"] == batch):
            assert seen[gap["start"] : gap["stop"]].all()
            seen[gap["start"] : gap["stop"]] = False
        assert (seen == done).all()
    # And a finished word is lost exactly if no bit above it is clear
    lost = {(row["batch_id"], row["level"], row["number"]) for row in found[Measured.LOST]}
    present = {(row["batch_id"], row["level"], row["number"]) for row in whole.to_pylist()}
    assert lost == {word for word in present if not _covered(word, words)}


def _covered(word: Word, words: dict[Word, int]) -> bool:
    batch, level, number = word
    return any(
        words.get((batch, above, number >> 6 * (above - level)), 0)
        >> (number >> 6 * (above - level - 1) & 63)
        & 1
        for above in range(level + 1, TIER)
    )


@pytest.mark.parametrize("tier", [1, 2])
def test_runs_of_higher_tiers_stay_apart_since_lower_words_may_lie_between(tier):
    # Given a word of a higher tier with two runs, the last of them at bit 63
    level, size = 3 * tier, 64 ** (3 * tier)
    # When it is swept
    found = swept([page({(1, level, 0): 1 << 63 | 0b110}, set(), items=64 * size - 5)])
    # Then each run is a hull, cut at the last item, and there is no gap
    assert [(row["start"], row["stop"], row["done"]) for row in found[Measured.HULL]] == [
        (size, 3 * size, 2 * size),
        (63 * size, 64 * size - 5, size - 5),
    ]
    assert not found[Measured.GAP]
