"""Following the pages of a listing."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar


class Page(Protocol):
    """A page of a listing; only a None cursor means the end."""

    @property
    def cursor(self) -> str | None: ...


P = TypeVar("P", bound=Page)


def pages(listing: Callable[..., P], *which: Any, **options: Any) -> Iterator[P]:
    """All pages of a listing, each read when it is taken.

    Args:
        listing: gives a page; takes ``cursor``.
        which: is listed.
        options: as the listing takes them.
    """
    page = listing(*which, **options)
    yield page
    while page.cursor is not None:
        page = listing(*which, **{**options, "cursor": page.cursor})
        yield page
