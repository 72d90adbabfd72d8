"""Lists of batches, of all or of those of a pattern: by state, by user key or by metadata, page by page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fanin.console.actions.batches import CANCEL
from fanin.console.actions.failures import REDRIVE
from fanin.console.pages.progress import Row, rows_of
from fanin.console.state import Console, LivePage, console_of, live_route
from fanin.domain.batch import Batch, Kind, State
from fanin.errors import InvalidRequest

BULK: Final = (REDRIVE, CANCEL)
"""Actions on all batches that a page of the list shows."""
Member = TypeVar("Member", bound=StrEnum)
SIZES: Final = (25, 50, 75)
"""How many batches a page may have."""
LOOKED_AT: Final = 1_000
"""Batches that one page looks at for those that it searches."""
_SORTS: Final[Mapping[str, Callable[[Row], Any]]] = {
    "created": lambda row: row.batch.created_at,
    "active": lambda row: row.batch.active_at,
    "items": lambda row: row.batch.items,
    "failed": lambda row: row.batch.failed + row.batch.held,
    "progress": lambda row: -1 if row.done is None else row.done / max(row.batch.items, 1),
}
"""How a page can be sorted. The service has an order of its own, so only what is on the page is sorted."""


@dataclass(frozen=True, slots=True)
class BatchSection:
    """Where batches are listed, and which.

    Attributes:
        name: first segment of its address, which the navigation shows as chosen, and its heading. The macro
            ``listing`` of the template of its parts shows a page of it.
        kind: only batches of this kind; None for all kinds.
        state: of the batches that are shown unless another is asked for.
        command: makes the first one, for lists that are empty.
        sizes: how many batches a page may have.
    """

    name: str
    kind: Kind | None = None
    state: State = State.OPEN
    command: str = ""
    sizes: tuple[int, ...] = SIZES


BATCHES: Final = BatchSection("batches", command="fanin open")


@dataclass(frozen=True, slots=True)
class BatchQuery:
    """What a list shows.

    Attributes:
        state: only batches in this state; None with a user key shows all states.
        search: a batch id, a user key, the beginning of one before ``*``, or ``name=value`` of the metadata.
        kind: only batches of this kind.
        sort: a key of the sorts; empty keeps the service's order.
        down: whether the largest comes first.
        size: batches of a page.
        cursor: where the page begins; None at the beginning.
        place: where it is shown.
    """

    state: State | None = State.OPEN
    search: str = ""
    kind: Kind | None = None
    sort: str = ""
    down: bool = True
    size: int = SIZES[0]
    cursor: str | None = None
    place: BatchSection = BATCHES

    @classmethod
    def of(cls, asked: Mapping[str, str], place: BatchSection = BATCHES) -> Self:
        """Read the query of an address.

        Raises:
            InvalidRequest: a parameter has a value that is not allowed.
        """
        search = asked.get("search", "").strip()
        by_key = bool(search) and not _in_state(search)
        state = asked.get("state", "") or ("" if by_key else place.state)
        size = asked.get("size", str(SIZES[0]))
        sort = asked.get("sort", "")
        if size not in map(str, place.sizes) or sort not in {"", *_SORTS}:
            raise InvalidRequest(
                f"size is one of {', '.join(map(str, place.sizes))}, and sort one of {', '.join(_SORTS)}"
            )
        return cls(
            one_of(State, "state", state),
            search,
            place.kind or one_of(Kind, "kind", asked.get("kind", "")),
            sort,
            asked.get("order", "down") != "up",
            int(size),
            asked.get("cursor") or None,
            place,
        )

    @property
    def in_state(self) -> bool:
        """Whether it goes through the batches of a state."""
        return _in_state(self.search)

    def address(self, **other: object) -> dict[str, object]:
        """The parameters of the address of this list, or of one that differs in some."""
        return {
            "state": self.state,
            "search": self.search,
            "kind": None if self.place.kind else self.kind,
            "sort": self.sort,
            "order": None if self.down else "up",
            "size": None if self.size == SIZES[0] else self.size,
            **other,
        }


@dataclass(frozen=True, slots=True)
class BatchList:
    """One page of the list.

    Attributes:
        rows: what it shows.
        cursor: of the next page; None at the end.
        looked_at: how many batches were looked at for them.
    """

    rows: tuple[Row, ...]
    cursor: str | None
    looked_at: int


def _in_state(search: str) -> bool:
    """Whether a search goes through the batches of a state, since no index has what it is for."""
    return "=" in search or search.endswith("*")


def one_of(kind: type[Member], name: str, text: str) -> Member | None:
    """The member of an enumeration that a parameter names; None for an empty text.

    Raises:
        InvalidRequest: there is no such member.
    """
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        raise InvalidRequest(f"{name} is one of {', '.join(kind)}, not {text[:32]!r}") from None


def listing(console: Console, query: BatchQuery) -> BatchList:
    """Read one page. A search goes through pages of the service until it has enough, up to a bound."""
    name, by_metadata, value = query.search.partition("=")

    def wanted(batch: Batch) -> bool:
        if query.kind not in {None, batch.kind}:
            return False
        if by_metadata:
            return batch.metadata.get(name) == value
        return not searched or batch.user_key.startswith(query.search[:-1])

    searched = query.in_state
    user_key = None if searched else query.search or None
    narrow = searched or query.kind is not None
    found: list[Batch] = []
    cursor, looked_at = query.cursor, 0
    while True:
        left = query.size - len(found)
        some = max(left, SIZES[0]) if narrow else left  # what is found beyond the size is shown, too
        page = console.fanin.ledger.list(query.state, user_key=user_key, cursor=cursor, limit=some)
        found += filter(wanted, page.batches)
        cursor, looked_at = page.cursor, looked_at + max(len(page.batches), 1)
        if cursor is None or len(found) >= query.size or looked_at >= LOOKED_AT:
            break
    rows = rows_of(console, found)
    if query.sort:
        rows.sort(key=_SORTS[query.sort], reverse=query.down)
    return BatchList(tuple(rows), cursor, looked_at)


def _names_batch(console: Console, text: str) -> bool:
    """Whether a search is for the batch with an id. A user key may be a number, too."""
    if not (text.isascii() and text.isdigit()):
        return False
    return not console.fanin.ledger.list(None, user_key=text, limit=1).batches


def routes(place: BatchSection) -> tuple[Route, Route]:
    """The routes of a list of batches: its pages, and what changes in them."""

    def read(request: Request) -> LivePage:
        console = console_of(request)
        query = BatchQuery.of(request.query_params, place)
        shown = listing(console, query)
        actions = BULK if console.options.write and place is BATCHES else ()
        values = {
            "here": place.name,
            "query": query,
            "bulk": [one for one in actions if any(not one.why_not(row.batch) for row in shown.rows)],
            "states": tuple(State),
            "kinds": tuple(Kind),
            "looked_at": LOOKED_AT,
        }
        facts = tuple((row.batch.batch_id, row.batch.state, row.batch.items, row.done) for row in shown.rows)
        parts = {"batches": (f"{place.name}_parts.html", "listing", shown, query)}
        return LivePage("batches.html", parts, facts, values=values)

    def page(request: Request) -> Response:
        console, search = console_of(request), BatchQuery.of(request.query_params, place).search
        if _names_batch(console, search):
            return RedirectResponse(console.templates.url(place.name, search), 303)
        return console.live_page(request, read(request))

    return Route(f"/{place.name}", page), live_route(f"/{place.name}", read)


ROUTES: Final = routes(BATCHES)
