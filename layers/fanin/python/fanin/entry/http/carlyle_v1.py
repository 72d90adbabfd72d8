"""The HTTP API of the original Carlyle, so that its clients work unchanged.

These are the differences. Unknown fields are ignored, as the original did. ``since`` is RFC 3339 or
milliseconds since the epoch. Deleting closed batches takes all that are not open. Deleting an estimated
batch cancels it: it reads as closed, until its lifetime ends. Errors are problems (RFC 9457).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode, OpenBatch, State
from fanin.domain.ids import MAX_BATCH_ID, MAX_COUNT, batch_uuid, parse_batch_id, parse_batch_uuid
from fanin.domain.marks import MAX_HEAVY, Count, Mark, Marked, Receipt
from fanin.domain.paging import pages
from fanin.domain.reports import merge_expired
from fanin.entry.http.route import HttpRequest, HttpRoute, LoggedAction, consumes, operates, produces, reads
from fanin.errors import GONE, BatchClosed, OutcomeUnknown
from fanin.wire import json_types as t
from fanin.wire.shapes import plain

if TYPE_CHECKING:  # the record of an action is imported with the first of them
    from fanin.wire.actions import Result

_ID: Final = t.whole(0, MAX_BATCH_ID).with_keywords(type=["integer", "string"], pattern="^[0-9]{1,16}$")
_KEY: Final[dict[str, t.JsonType[Any]]] = {"userKey": t.or_null(t.TEXT)}
_STANDING: Final[dict[str, t.JsonType[Any]]] = {"isComplete": t.BOOLEAN, "isClosed": t.BOOLEAN, **_KEY}

CREATE: Final = plain("CarlyleCreate", {}, {"userKey": t.or_null(t.text(limits.MAX_USER_KEY))}, lenient=True)
ITEMS: Final = plain("CarlyleItems", {"batchId": _ID, "items": t.whole(1, MAX_COUNT)}, lenient=True)
ACKS: Final = plain("CarlyleAcks", {"batchItemIds": t.many(t.ITEM_ID, limits.MAX_MARKS)}, lenient=True)
DECREMENT: Final = plain("CarlyleDecrement", {"batchId": t.UUID}, {"by": t.whole(1, MAX_COUNT)}, lenient=True)
DECREMENTS: Final = plain("CarlyleDecrements", {"acks": t.many(DECREMENT, MAX_HEAVY)}, lenient=True)
CREATED: Final = plain("CarlyleCreated", {"batchId": t.BATCH_ID})
ESTIMATED_CREATED: Final = plain("CarlyleEstimatedCreated", {"batchId": t.UUID})
BATCH: Final = plain("CarlyleBatch", {"batchId": t.BATCH_ID, **_STANDING})
ESTIMATED_BATCH: Final = plain("CarlyleEstimatedBatch", _STANDING)
CLOSED: Final = plain("CarlyleClosed", {"isComplete": t.BOOLEAN})
GROUP: Final = plain("CarlyleGroup", {"id": t.UUID, "upto": t.whole(1, MAX_COUNT)})
GROUPS: Final = plain("CarlyleGroups", {"batchItemGroupIds": t.many(GROUP)})
COMPLETED: Final = plain("CarlyleCompleted", {"batchId": t.BATCH_ID, **_KEY})
COMPLETIONS: Final = plain("CarlyleCompletions", {"batchCompletions": t.many(COMPLETED)})
COMPLETION: Final = plain("CarlyleCompletion", {"batchId": t.UUID, **_KEY, "isComplete": t.BOOLEAN})
RESULTS: Final = plain("CarlyleResults", {"results": t.many(COMPLETION)})
REMOVED: Final = plain("CarlyleRemoved", {"batchesRemoved": t.NATURAL, "itemsRemoved": t.NATURAL})

_EXACT: Final = f"{names.CARLYLE_ROOT}/exact"
_ESTIMATED: Final = f"{names.CARLYLE_ROOT}/estimated"
_TIME: Final = t.text(least=1).with_keywords(description="RFC 3339, or milliseconds since the epoch")
_SINCE: Final = {"since": _TIME}
_UUID: Final = {"batch_id": t.UUID}


def _open(fanin: Fanin, request: HttpRequest, mode: Mode) -> Batch:
    opening = OpenBatch(user_key=request.body.get("userKey") or "", mode=mode)
    return fanin.ledger.open(opening, caller=request.caller)


def _create_exact(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Open a batch."""
    return {"batchId": _open(fanin, request, Mode.EXACT).batch_id}


def _get_exact(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Read whether a batch is complete, and whether it is closed."""
    batch = fanin.ledger.status(request.batch_id).batch
    return {"batchId": batch.batch_id, **_standing(batch)}


def _standing(batch: Batch) -> t.Json:
    complete, closed = batch.state is State.COMPLETE, batch.state is not State.OPEN
    return {"isComplete": complete, "isClosed": closed, "userKey": batch.user_key or None}


def _close_exact(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Close a batch: it completes when its last item is done."""
    batch = fanin.ledger.close(request.batch_id)
    return {"isComplete": batch.state is State.COMPLETE}


def _add_exact(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Add items. Their ids are the group's id with an index."""
    group = fanin.ledger.add(parse_batch_id(str(request.body["batchId"])), request.body["items"])
    return {"batchItemGroupIds": [{"id": group.id, "upto": group.upto}]}


def _ack_exact(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Acknowledge items. The answer names the batches that are complete."""
    marked = _mark(fanin, request.body["batchItemIds"])
    complete = [receipt for receipt in marked.whole() if receipt.complete]
    return {"batchCompletions": [{"batchId": r.batch_id, "userKey": r.user_key or None} for r in complete]}


def _mark(fanin: Fanin, marks: Sequence[Mark]) -> Marked:
    from fanin.entry.observe import count_receipts  # noqa: PLC0415  the library has the table without it

    marked = fanin.ledger.mark(marks)
    count_receipts(marked.receipts)
    return marked


def _delete_open(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Orphan open batches without activity since then."""
    return _expire(fanin, request, State.OPEN)


def _delete_closed(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Remove batches that are not open, or orphan them, if they had no activity since then."""
    # Ended batches first, so that those which this call ends are left for the next one to remove.
    return _expire(fanin, request, *(state for state in State if state.terminal), State.CLOSED)


def _expire(fanin: Fanin, request: HttpRequest, *states: State) -> t.Json:
    """All pages, since this API has no cursor."""
    text: str = request.query["since"]
    since = int(text) if re.fullmatch("[0-9]{1,15}", text) else t.decode_time(text)
    found = (page for state in states for page in pages(fanin.ledger.expire, state, idle_since=since))
    expired = merge_expired(found)
    return {"batchesRemoved": expired.batches, "itemsRemoved": expired.items}


def _counts(answer: t.Json) -> Result:
    return {"batches": answer["batchesRemoved"], "items": answer["itemsRemoved"]}


def _create_estimated(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Open a batch that counts its items, and does not know which of them are done."""
    return {"batchId": batch_uuid(_open(fanin, request, Mode.ESTIMATED).batch_id)}


def _get_estimated(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Read whether a batch is complete, and whether it is closed."""
    return _standing(fanin.ledger.status(_uuid(request)).batch)


def _close_estimated(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Close a batch: it completes when as many items were acknowledged as were added."""
    batch = fanin.ledger.close(_uuid(request))
    return _completion(batch, complete=batch.state is State.COMPLETE)


def _increment(fanin: Fanin, request: HttpRequest) -> None:
    """Add to the number of items. Not idempotent."""
    fanin.ledger.add(_uuid(request), request.query["by"])


def _decrement(fanin: Fanin, request: HttpRequest) -> t.Json:
    """Count items as done. Not idempotent."""
    totals: Counter[int] = Counter()
    for ack in request.body["acks"]:
        totals[parse_batch_uuid(ack["batchId"])] += ack.get("by", 1)
    marked = _mark(fanin, [Count(batch_id, n) for batch_id, n in totals.items()])
    if marked.receipts and marked.unsettled:
        raise OutcomeUnknown(
            f"items of the batches {[receipt.batch_id for receipt in marked.receipts]} were counted, those of"
            f" others were not: {next(iter(marked.unsettled.values()))}; repeating the call would count them"
            " again, so read the status of its batches first"
        )
    return {"results": [_completion(one, complete=one.complete) for one in marked.whole()]}


def _delete_estimated(fanin: Fanin, request: HttpRequest) -> None:
    """Cancel a batch; it reads as closed until its lifetime ends."""
    fanin.ledger.cancel(_uuid(request))


def _completion(of: Batch | Receipt, *, complete: bool) -> t.Json:
    return {"batchId": batch_uuid(of.batch_id), "userKey": of.user_key or None, "isComplete": complete}


def _closed(answer: t.Json) -> Result:
    return {"complete": answer["isComplete"]}


def _uuid(request: HttpRequest) -> int:
    return parse_batch_uuid(request.path["batch_id"])


# fmt: off
ROUTES: Final = (
    produces("POST", _EXACT, "carlyleCreateExact", _create_exact, CREATED, body=CREATE, slash=True),
    reads(f"{_EXACT}/{{batch_id}}", "carlyleGetExact", _get_exact, BATCH),
    produces(
        "POST", f"{_EXACT}/close/{{batch_id}}", "carlyleCloseExact", _close_exact, CLOSED,
        action=LoggedAction(_closed),
    ),
    produces(
        "POST", f"{_EXACT}/items", "carlyleAddExact", _add_exact, GROUPS, body=ITEMS,
        errors=(*GONE, BatchClosed),
    ),
    consumes(
        "POST", f"{_EXACT}/items/ack", "carlyleAckExact", _ack_exact, COMPLETIONS, body=ACKS, errors=GONE,
    ),
    HttpRoute(
        "DELETE", f"{_EXACT}/open", "carlyleDeleteOpen", _delete_open, REMOVED, required=_SINCE,
        action=LoggedAction(_counts),
    ),
    HttpRoute(
        "DELETE", f"{_EXACT}/closed", "carlyleDeleteClosed", _delete_closed, REMOVED, required=_SINCE,
        action=LoggedAction(_counts),
    ),
    produces(
        "POST", _ESTIMATED, "carlyleCreateEstimated", _create_estimated, ESTIMATED_CREATED, body=CREATE,
        slash=True,
    ),
    reads(f"{_ESTIMATED}/{{batch_id}}", "carlyleGetEstimated", _get_estimated, ESTIMATED_BATCH, named=_UUID),
    operates(
        "DELETE", f"{_ESTIMATED}/{{batch_id}}", "carlyleDeleteEstimated", _delete_estimated, None, 204,
        named=_UUID, action=LoggedAction(),
    ),
    produces(
        "POST", f"{_ESTIMATED}/{{batch_id}}/close", "carlyleCloseEstimated", _close_estimated, COMPLETION,
        named=_UUID, action=LoggedAction(_closed),
    ),
    produces(
        "POST", f"{_ESTIMATED}/{{batch_id}}/incr", "carlyleIncrement", _increment, None, 204,
        required={"by": t.whole(1, MAX_COUNT)}, named=_UUID, errors=(BatchClosed,),
    ),
    consumes(
        "POST", f"{_ESTIMATED}/decr", "carlyleDecrement", _decrement, RESULTS, body=DECREMENTS, errors=GONE,
    ),
)
# fmt: on
