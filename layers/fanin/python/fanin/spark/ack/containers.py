"""Pages of bits, and the containers that hold them while they are shuffled.

A *page* is 32,768 consecutive items of a batch. Its bits are in one of two containers, whichever is smaller,
as in Roaring bitmaps (Lemire et al., 2016): a bitmap of 4,096 bytes, whose bit 0 is the lowest of the first
byte; or, for fewer than 2,048 items, their ascending offsets as little-endian 16-bit integers. So a page
takes at most two bytes for an acknowledgement, and much less than one where acknowledgements are dense.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

PAGE_BITS: Final = 15
PAGE: Final = 1 << PAGE_BITS
PAGE_BYTES: Final = PAGE // 8
WORDS: Final = PAGE // 64
SPARSE: Final = PAGE_BYTES // 2
"""A page of fewer items than this is kept as offsets."""

AT_ONCE: Final = 512
"""Pages that are unpacked to flags at once: 16 MiB."""

Words: TypeAlias = npt.NDArray[np.uint64]

if hasattr(np, "bitwise_count"):

    def popcount(words: Words) -> npt.NDArray[Any]:
        """The number of bits in each word."""
        return np.bitwise_count(words)

else:  # numpy 1, with Spark 3.5
    _COUNTS: Final = np.array([n.bit_count() for n in range(1 << 16)], np.uint8)

    def popcount(words: Words) -> npt.NDArray[Any]:
        """The number of bits in each word."""
        quarters = np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape, 4)
        counts: npt.NDArray[Any] = _COUNTS[quarters].sum(axis=-1, dtype=np.uint8)
        return counts


def containers(flags: npt.NDArray[np.bool_]) -> Iterator[tuple[int, bytes]]:
    """Pack the flags of whole pages, one flag for each item.

    Yields:
        For each page that is not empty: its number, and its container.
    """
    packed = np.packbits(flags, bitorder="little").reshape(-1, PAGE_BYTES)
    for number, count in enumerate(popcount(packed.view(np.uint64)).sum(axis=1, dtype=np.int64).tolist()):
        if count >= SPARSE:
            yield number, packed[number].tobytes()
        elif count:
            page = flags[number * PAGE : (number + 1) * PAGE]
            yield number, np.flatnonzero(page).astype("<u2").tobytes()


def bitmaps(pages: Sequence[bytes | memoryview]) -> Words:
    """Unpack containers.

    Returns:
        One row of 512 words for each page.
    """
    dense = [at for at, bits in enumerate(pages) if len(bits) == PAGE_BYTES]
    sparse = [at for at, bits in enumerate(pages) if len(bits) < PAGE_BYTES]
    words = np.zeros((len(pages), WORDS), np.uint64)
    if dense:
        joined = np.frombuffer(b"".join(pages[at] for at in dense), "<u8")
        words[dense] = joined.reshape(-1, WORDS)
    for first in range(0, len(sparse), AT_ONCE):
        some = sparse[first : first + AT_ONCE]
        offsets = np.frombuffer(b"".join(pages[at] for at in some), "<u2").astype(np.int64)
        lengths = [len(pages[at]) // 2 for at in some]
        flags = np.zeros(len(some) * PAGE, bool)
        flags[np.repeat(np.arange(len(some)) * PAGE, lengths) + offsets] = True
        words[some] = np.packbits(flags, bitorder="little").view(np.uint64).reshape(-1, WORDS)
    return words
