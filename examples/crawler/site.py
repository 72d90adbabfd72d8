"""A web site that is made up as it is read: every page links to others, forward, back and to itself."""

from random import Random

LINKS = 12
"""Links of a page; some are the same."""
LOST = 0.02
"""Share of the pages that no page links to on purpose; some of them cannot be reached at all."""


def links(page: int, pages: int) -> list[int]:
    """The links of a page, in order; the same whoever asks."""
    rng = Random(f"page {page} of {pages}")  # noqa: S311
    near = [page * 3 + n for n in (1, 2, 3)]  # so that most pages can be reached, in a few steps
    far = [rng.randrange(pages) for _ in range(LINKS - len(near))]
    return [one for one in (*near, *far, page) if one < pages and not _lost(one, pages)]


def _lost(page: int, pages: int) -> bool:
    return page > 0 and Random(f"lost {page} of {pages}").random() < LOST  # noqa: S311


def reachable(pages: int) -> set[int]:
    """All pages that one comes to from the first one."""
    seen, waiting = {0}, [0]
    while waiting:
        new = set(links(waiting.pop(), pages)) - seen
        seen |= new
        waiting += new
    return seen
