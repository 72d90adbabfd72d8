"""Cuts a stream into chunks that fit one request each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def chunks(
    stream: Iterable[T], *, max_items: int, size_of: Callable[[T], int] | None = None, max_bytes: int = 0
) -> Iterator[list[T]]:
    """Cut a stream into lists that fit one request each, reading at most one item ahead.

        >>> list(chunks("abcde", max_items=2))
        [['a', 'b'], ['c', 'd'], ['e']]
        >>> list(chunks(["long", "a", "b"], max_items=2, size_of=len, max_bytes=3))
        [['long'], ['a', 'b']]

    Args:
        stream: any iterable, also an endless one.
        max_items: most items in a chunk.
        size_of: gives the size of an item in bytes; without it only the number of items counts.
        max_bytes: most bytes in a chunk. A larger item is a chunk of its own; sending it fails.

    Yields:
        Non-empty lists, in the stream's order.
    """
    chunk: list[T] = []
    filled = 0
    for item in stream:
        size = size_of(item) if size_of else 0
        if chunk and (len(chunk) == max_items or (size_of and filled + size > max_bytes)):
            yield chunk
            chunk, filled = [], 0
        chunk.append(item)
        filled += size
    if chunk:
        yield chunk
