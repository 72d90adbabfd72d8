"""Lifting whole words to the words above them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fanin.domain.tree import Bits, Tree
from fanin.spark.ack.page_merger import lift_task, lift_windows
from tests.spark.given import Given, batch, minimal, rows_of

MASK = Tree().full
WORDS = 4_096


def windows_of(*acknowledged: range) -> np.ndarray:
    """The words of some windows, each of which has a range of its items acknowledged."""
    flags = np.zeros((len(acknowledged), WORDS * 64), bool)
    for row, items in zip(flags, acknowledged, strict=True):
        row[items.start : items.stop] = True
    return np.packbits(flags, axis=1, bitorder="little").view(np.uint64)


def lifted(words: np.ndarray, *, windows: list[int], root: int) -> set[Bits]:
    batches = np.full(len(windows), 7)
    rows = rows_of(lift_windows(batches, np.array(windows), words, lambda some: dict.fromkeys(some, root)))
    assert {row["batch_id"] for row in rows} <= {7}
    return {Bits(row["level"], row["number"], row["mask"] & MASK) for row in rows}


def test_whole_windows_are_bits_of_level_3() -> None:
    whole = range(WORDS * 64)

    found = lifted(windows_of(whole, whole), windows=[0, 65], root=4)

    assert found == {Bits(3, 0, 1), Bits(3, 1, 2)}


def test_nothing_is_lifted_above_the_root() -> None:
    # Given a batch of exactly one window, whose root is on level 2
    found = lifted(windows_of(range(WORDS * 64)), windows=[0], root=2)

    assert found == {Bits(2, 0, MASK)}


@pytest.mark.parametrize("items", [64**4, 64**4 + 1, 64**5])
def test_levels_above_windows_are_lifted_to_the_root_and_no_further(items: int) -> None:
    # Given the bits of all whole windows of a batch, three of whose words hold bit 63
    source = Given((batch(21, items),))
    windows = items // 64**3
    words = Tree().masks(range(windows))
    rows = {
        "batch_id": [21] * len(words),
        "number": list(words),
        "mask": [mask - (mask >> 63 << 64) for mask in words.values()],
    }

    found = rows_of(lift_task(source)([pa.RecordBatch.from_pydict(rows)]))

    # Then they are the cover by its definition, three levels up
    marks = {Bits(row["level"] - 3, row["number"], row["mask"] & MASK) for row in found}
    assert marks == minimal(set(range(windows)), Tree().root_level(items) - 3)
