"""What stands above all pages of one batch: how far it is, its times, and what it is related to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.pages.progress import Row, sampled
from fanin.console.state import Console, console_of, cursor_in, natural
from fanin.domain.batch import RETENTION, Batch, Kind, Mode
from fanin.domain.ids import parse_batch_id, parse_item
from fanin.domain.reports import Estimate, Progress
from fanin.errors import InvalidItemId

RETRIES: Final = 10
"""How many redrives are looked at for the batches that retry one."""
COUNTED: Final = 8_192
"""Items of a batch that are counted, which reads at most 131 words; of a larger one, bounds are read."""


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above all pages of a batch.

    Attributes:
        row: the batch, and how far it is.
        at: when it was read, ms.
        retried_by: batches that a redrive has made of its failures.
        retried_more: whether there may be others.
        cost: what it has cost so far, as far as the service estimates that.
    """

    row: Row
    at: int
    retried_by: tuple[int, ...] = ()
    retried_more: bool = False
    cost: Estimate | None = None
    tabs: ClassVar[tuple[str, ...]] = (
        *("", "picture", "failures", "missing", "results", "why"),
        *("targets", "redrives", "children", "events", "cost"),
    )
    """The pages of a batch: segment of the address, and text of the link; the first is the batch itself."""

    @property
    def batch(self) -> Batch:
        """The row of the batch."""
        return self.row.batch

    @property
    def parent(self) -> tuple[int, int] | None:
        """The item that the batch does the work of: its batch, and its ordinal there."""
        if self.batch.parent_item is None:
            return None
        try:
            block, ordinal = parse_item(self.batch.parent_item)
        except InvalidItemId:  # the row is damaged
            return None
        return block.batch_id, ordinal

    @property
    def orphaned_at(self) -> int | None:
        """When it ends without activity, at the earliest; None if it has ended or its pattern decides."""
        batch = self.batch
        return None if batch.state.terminal or batch.kind is not Kind.BATCH else batch.idle_at

    @property
    def stalled_at(self) -> int | None:
        """When it had been without activity for its ``stall_after``, ms; None if that is not so."""
        at = None if self.batch.state.terminal else self.batch.quiet_at
        return None if at is None or at > self.at else at

    @property
    def removed_at(self) -> int:
        """When the batch can no longer be read, ms."""
        return self.batch.expires_at * 1000

    @property
    def lifetime_ends_at(self) -> int:
        """When its lifetime is over, ms."""
        return (self.batch.expires_at - RETENTION) * 1000

    @property
    def seconds(self) -> float | None:
        """How long it took; None if it has not ended."""
        ended_at = self.batch.ended_at
        return None if ended_at is None else (ended_at - self.batch.created_at) / 1000

    @property
    def figures(self) -> tuple[object, ...]:
        """What moves while a batch is worked on, without times."""
        batch, row = self.batch, self.row
        reached = (batch.items, row.done, row.exact, batch.partial)
        failures = (batch.failed, batch.failed_more, batch.held, batch.may_hold_more)
        totals = (tuple(batch.totals.items()), batch.totals_exact)
        return (batch.state, *reached, *failures, *totals, batch.deadline)

    @property
    def exact(self) -> bool:
        """Whether none of its figures is a bound."""
        batch = self.batch
        return self.row.exact and not batch.failed_more and not batch.may_hold_more

    def counts(self) -> Mapping[str, str]:
        """Tab → the figure beside its name."""
        batch = self.batch
        failures = batch.failed + batch.held
        more = "+" if batch.failed_more or batch.may_hold_more else ""
        return {
            "failures": f"{failures:,}{more}" if failures else "",
            "targets": str(batch.targets) if batch.targets else "",
        }


def heading(console: Console, batch_id: int, before: Heading | None = None) -> Heading:
    """Read the heading of a batch: one or two statuses, and a page of redrives if it has ended with failures.

    Args:
        console: whose service is asked.
        batch_id: of the batch.
        before: what was read before. It saves calls: once the batch has ended, the batches that retry it are
            taken from there.
    """
    progress = _progress(console, batch_id, counted=before is not None and _small(before.batch))
    row = sampled(console, progress)
    batch = row.batch
    if before is not None and before.batch.state.terminal:
        return Heading(row, console.now(), before.retried_by, before.retried_more, cost=progress.cost)
    if not batch.state.terminal or not (batch.failed or batch.held) or batch.kind is not Kind.BATCH:
        return Heading(row, console.now(), cost=progress.cost)
    page = console.fanin.redrives.redrives(batch_id, limit=RETRIES)
    # One that was made before the batch ended has sent items of the batch itself.
    others = (one.batch_id for one in page.redrives if one.batch_id is not None)
    retried_by = dict.fromkeys(other for other in others if other != batch_id)
    return Heading(row, console.now(), tuple(retried_by), page.cursor is not None, cost=progress.cost)


def _progress(console: Console, batch_id: int, *, counted: bool) -> Progress:
    """How far a batch is. The items of a small one are counted, since bounds would hardly move."""
    progress = console.fanin.ledger.status(batch_id, exact=counted)
    whole = progress.exact and not progress.batch.failed_more and not progress.batch.may_hold_more
    if counted or whole or not _small(progress.batch):
        return progress
    return console.fanin.ledger.status(batch_id, exact=True)


def _small(batch: Batch) -> bool:
    return batch.mode is Mode.EXACT and batch.items <= COUNTED


class BatchRequest:
    """A request for a page of one batch.

    Attributes:
        request: itself.
        console: the console that serves it.
        ledger: the service's.
        batch_id: the batch that its address names.
        query: parameters of the address.
        cursor: where the page of a listing begins; None at its beginning.

    Raises:
        InvalidRequest: the address has something else in place of a batch id.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.console = console_of(request)
        self.ledger = self.console.fanin.ledger
        self.batch_id = parse_batch_id(request.path_params["batch_id"])
        self.query = request.query_params
        self.cursor = cursor_in(request)

    @property
    def ordinal(self) -> int:
        """The item that its address names."""
        return natural("the ordinal of an item", self.request.path_params["ordinal"]) or 0

    @cached_property
    def heading(self) -> Heading:
        """What stands above the page."""
        return heading(self.console, self.batch_id)

    @property
    def batch(self) -> Batch:
        """The row of the batch."""
        return self.heading.batch


def shown_above(heading: Heading, tab: str) -> dict[str, Any]:
    """What all pages of a batch show."""
    return {"here": "batches", "heading": heading, "batch": heading.batch, "tab": tab}


def tab_route(
    tab: str, read: Callable[[BatchRequest], Mapping[str, Any]], path: str = "", template: str = ""
) -> Route:
    """The route of a page of a batch.

    Args:
        tab: which page of the batch it is.
        read: reads what it shows below its heading.
        path: below that of the batch, if it is not the tab's.
        template: file name, if it is not the tab's.
    """

    def page(request: Request) -> Response:
        asked = BatchRequest(request)
        values = read(asked)
        return asked.console.page(
            request, template or f"{tab}.html", **shown_above(asked.heading, tab), **values
        )

    return Route(f"/batches/{{batch_id}}/{path or tab}", page)
