"""What has happened to a batch, in order of time; and the event that tells of its end."""

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.app.ledger.announcing import end_event, fitted
from fanin.app.ports.events import Event
from fanin.console.actions.words import state_of
from fanin.console.pages.excerpts import download, excerpt
from fanin.console.pages.heading import BatchRequest, Heading, tab_route
from fanin.domain.batch import Kind, OnDeadline, State
from fanin.domain.redrives import Redriving, Redrivings

REDRIVES: Final = 50
"""Redrives that the page shows."""
DETAIL: Final = 24 * 1024
"""Characters of the event that the page shows; the rest is in the file that it links to."""


class EventRow(NamedTuple):
    """Something that has happened, or will.

    Attributes:
        at: when, ms.
        what: in a few words.
        detail: more about it.
        batch_id: another batch that has to do with it.
        kind: ``good``, ``bad``, ``warn`` or empty.
        ahead: whether it is still to come.
    """

    at: int
    what: str
    detail: str = ""
    batch_id: int | None = None
    kind: str = ""
    ahead: bool = False


def timeline(above: Heading, redrives: Sequence[Redriving]) -> list[EventRow]:
    """What has happened to a batch as far as its row and its redrives say, and what will."""
    found = [*_past(above), *map(_redrive, redrives), *_ahead(above)]
    return sorted(found, key=lambda one: (one.ahead, one.at))


def _past(above: Heading) -> Iterator[EventRow]:
    batch = above.batch
    retry = "to redo the failed items of batch" if batch.retry_of is not None else ""
    yield EventRow(batch.created_at, "Opened", retry, batch.retry_of)
    if batch.closed_at is not None:
        yield EventRow(batch.closed_at, "Closed", f"with {batch.items:,} items")
    if batch.failing_at is not None:
        yield EventRow(batch.failing_at, "First failure", "Batch Failing is sent once", kind="warn")
    if batch.waiting_at is not None:
        what = "only held items were left; Batch Waiting is sent once"
        yield EventRow(batch.waiting_at, "Waiting", what, kind="warn")
    if batch.deadline is not None and batch.ended_at is not None and batch.deadline <= batch.ended_at:
        yield EventRow(batch.deadline, "Deadline", kind="warn")
    if above.stalled_at is not None:
        quiet = f"no activity for {batch.stall_after:,} s; Batch Stalled is sent once for each stall"
        yield EventRow(above.stalled_at, "Stalled", quiet, kind="warn")
    if batch.ended_at is not None:
        detail = "with items missing" if batch.partial else f"because of {batch.cause}" if batch.cause else ""
        well = batch.state is State.COMPLETE and not batch.partial
        kind = "bad" if not well else "warn" if batch.failed else "good"
        yield EventRow(batch.ended_at, f"Ended: {state_of(batch)}", detail, kind=kind)


def _redrive(one: Redriving) -> EventRow:
    where = " as items of batch" if one.batch_id not in {None, one.retry_of} else ""
    sent = "message sent" if one.items == 1 else "messages sent"
    other = one.batch_id if where else None
    return EventRow(one.started_at or 0, "Redrive", f"{one.items:,} {sent} again{where}", other)


def _ahead(above: Heading) -> Iterator[EventRow]:
    batch = above.batch
    if not batch.state.terminal:
        if batch.deadline is not None:
            completes = batch.on_deadline is OnDeadline.COMPLETE
            then = "the batch completes, with what is missing" if completes else "the batch times out"
            late = batch.deadline <= above.at
            yield EventRow(batch.deadline, "Deadline", then, kind="warn" if late else "", ahead=not late)
        if above.orphaned_at is not None:
            yield EventRow(above.orphaned_at, "Orphaned", "if nothing happens until then", ahead=True)
    yield EventRow(above.removed_at, "Forgotten", "the batch reads as gone from then on", ahead=True)


def end_of(asked: BatchRequest) -> Event | None:
    """The event that told of the end of a batch, made again by the same rules; None if it has not ended."""
    if not asked.batch.state.terminal:
        return None
    counted = asked.ledger.status(asked.batch_id, exact=True).batch
    at = counted.ended_at or asked.heading.at
    return fitted(end_event(asked.ledger, counted, counted=counted, at=at))


def _written(event: Event) -> str:
    return json.dumps(json.loads(event.body), indent=2, ensure_ascii=False)


def events(asked: BatchRequest) -> Mapping[str, Any]:
    found = Redrivings(())
    if asked.batch.kind is Kind.BATCH:
        found = asked.console.fanin.redrives.redrives(asked.batch_id, limit=REDRIVES)
    event = end_of(asked)
    return {
        "moments": timeline(asked.heading, found.redrives),
        "more": found.cursor is not None,
        "event": event,
        "detail": event and excerpt(_written(event), DETAIL),
        "special": asked.batch.kind in (Kind.SCATTER, Kind.FRAME),  # they change the event of a batch's end
    }


def detail(request: Request) -> Response:
    """The whole detail of the event of a batch's end, as a file."""
    asked = BatchRequest(request)
    event = end_of(asked)
    if event is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return download(_written(event), "application/json", f"batch-{asked.batch_id}-end.json")


ROUTES: Final = (tab_route("events", events), Route("/batches/{batch_id}/events/end", detail))
