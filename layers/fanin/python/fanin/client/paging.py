"""The pages of an answer."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar


class Page(Protocol):
    """An answer that names the cursor of the page after it; None on the last page."""

    @property
    def cursor(self) -> str | None: ...


P = TypeVar("P", bound=Page)


def follow_cursor(read: Callable[[str | None], P]) -> Iterator[P]:
    """Read all pages of an answer, each when it is asked for.

    Args:
        read: reads the page at a cursor; None is the first page.
    """
    page = read(None)
    yield page
    while page.cursor is not None:
        page = read(page.cursor)
        yield page
