"""Cutting a stream into pages that a request can carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


def pages(
    stream: Iterable[T], *, most: int, size_of: Callable[[T], int] | None = None, most_bytes: int = 0
) -> Iterator[list[T]]:
    """Cut a stream into lists of at most ``most`` things and ``most_bytes`` bytes, reading no further ahead.

    Args:
        stream: anything, also without end.
        most: things in a page.
        size_of: bytes a thing takes; without it only their number counts.
        most_bytes: bytes in a page. A thing larger than that is a page of its own: who sends it will say so.

    Yields:
        Lists that are never empty, in the stream's order.
    """
    page: list[T] = []
    filled = 0
    for thing in stream:
        size = size_of(thing) if size_of else 0
        if page and (len(page) == most or (size_of and filled + size > most_bytes)):
            yield page
            page, filled = [], 0
        page.append(thing)
        filled += size
    if page:
        yield page


class Page(Protocol):
    """An answer that may go on."""

    @property
    def cursor(self) -> str | None: ...


P = TypeVar("P", bound=Page)


def followed(read: Callable[[str | None], P]) -> Iterator[P]:
    """Read page after page, as each one's cursor says, until one has none."""
    page = read(None)
    yield page
    while page.cursor is not None:
        page = read(page.cursor)
        yield page
