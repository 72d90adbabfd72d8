"""The HTTP API of the original Carlyle, so that its clients work unchanged.

What differs is said here. Unknown fields are let pass, as the original did. ``since`` is RFC 3339 or
milliseconds since the epoch. Deleting closed batches takes all that are not open. Deleting an estimated
batch cancels it: it reads as closed, until its lifetime ends. Errors are problems (RFC 9457).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from fanin import names
from fanin.app.services import Services
from fanin.domain.acks import Count, Receipt
from fanin.domain.batch import Batch, Mode, OpenBatch, State
from fanin.domain.ids import MAX_COUNT, batch_uuid, parse_batch_id, parse_batch_uuid
from fanin.domain.reports import Expired
from fanin.entry.http.route import Request, Route
from fanin.entry.http.schemas import text, whole
from fanin.entry.observe import count_receipts
from fanin.errors import BatchClosed, BatchGone, BatchNotFound
from fanin.wire.ledger import Json, decode_time

_EXACT: Final = f"{names.CARLYLE_ROOT}/exact"
_ESTIMATED: Final = f"{names.CARLYLE_ROOT}/estimated"
_GONE: Final = (BatchNotFound, BatchGone)
_SINCE: Final = {"since": text(least=1) | {"description": "RFC 3339, or milliseconds since the epoch"}}
_ENDED_THEN_CLOSED: Final = (*(state for state in State if state.terminal), State.CLOSED)


def _user_key(of: Batch | Receipt) -> str | None:
    return of.user_key or None


def _open(services: Services, request: Request, mode: Mode) -> Batch:
    return services.ledger.open(OpenBatch(user_key=request.body.get("userKey") or "", mode=mode))


def _create_exact(services: Services, request: Request) -> Json:
    return {"batchId": _open(services, request, Mode.EXACT).batch_id}


def _get_exact(services: Services, request: Request) -> Json:
    batch = services.ledger.status(parse_batch_id(request.path["batch_id"])).batch
    return {"batchId": batch.batch_id, **_standing(batch)}


def _standing(batch: Batch) -> Json:
    return {
        "isComplete": batch.state is State.COMPLETE,
        "isClosed": batch.state is not State.OPEN,
        "userKey": _user_key(batch),
    }


def _close_exact(services: Services, request: Request) -> Json:
    batch = services.ledger.close(parse_batch_id(request.path["batch_id"]))
    return {"isComplete": batch.state is State.COMPLETE}


def _add_exact(services: Services, request: Request) -> Json:
    group = services.ledger.add(parse_batch_id(str(request.body["batchId"])), request.body["items"])
    return {"batchItemGroupIds": [{"id": group.id, "upto": group.upto}]}


def _ack_exact(services: Services, request: Request) -> Json:
    receipts = services.ledger.ack(request.body["batchItemIds"])
    count_receipts(receipts)
    complete = [receipt for receipt in receipts if receipt.complete]
    return {"batchCompletions": [{"batchId": r.batch_id, "userKey": _user_key(r)} for r in complete]}


def _delete_open(services: Services, request: Request) -> Json:
    return _removed(services.ledger.expire(State.OPEN, idle_since=_since(request)))


def _delete_closed(services: Services, request: Request) -> Json:
    since = _since(request)
    # Ended ones first: those that this call ends are left for the next to remove.
    parts = [services.ledger.expire(state, idle_since=since) for state in _ENDED_THEN_CLOSED]
    return _removed(Expired(sum(part.batches for part in parts), sum(part.items for part in parts)))


def _removed(expired: Expired) -> Json:
    return {"batchesRemoved": expired.batches, "itemsRemoved": expired.items}


def _since(request: Request) -> int:
    since: str = request.query["since"]
    return int(since) if re.fullmatch("[0-9]{1,15}", since) else decode_time(since)


def _create_estimated(services: Services, request: Request) -> Json:
    return {"batchId": batch_uuid(_open(services, request, Mode.ESTIMATED).batch_id)}


def _get_estimated(services: Services, request: Request) -> Json:
    return _standing(services.ledger.status(_uuid(request)).batch)


def _close_estimated(services: Services, request: Request) -> Json:
    batch = services.ledger.close(_uuid(request))
    return _completion(batch, complete=batch.state is State.COMPLETE)


def _increment(services: Services, request: Request) -> None:
    services.ledger.add(_uuid(request), request.query["by"])


def _decrement(services: Services, request: Request) -> Json:
    totals: Counter[int] = Counter()
    for ack in request.body["acks"]:
        totals[parse_batch_uuid(ack["batchId"])] += ack.get("by", 1)
    receipts = services.ledger.ack(counts=[Count(batch_id, n) for batch_id, n in totals.items()])
    count_receipts(receipts)
    return {"results": [_completion(receipt, complete=receipt.complete) for receipt in receipts]}


def _delete_estimated(services: Services, request: Request) -> None:
    services.ledger.cancel(_uuid(request))


def _completion(of: Batch | Receipt, *, complete: bool) -> Json:
    return {"batchId": batch_uuid(of.batch_id), "userKey": _user_key(of), "isComplete": complete}


def _uuid(request: Request) -> int:
    return parse_batch_uuid(request.path["batch_id"])


# fmt: off
ROUTES: Final = (
    Route(
        "POST", _EXACT, "carlyleCreateExact", "Create a batch", _create_exact, "CarlyleCreated",
        body="CarlyleCreate",
    ),
    Route(
        "GET", f"{_EXACT}/{{batch_id}}", "carlyleGetExact", "A batch", _get_exact, "CarlyleBatch",
        errors=_GONE,
    ),
    Route(
        "POST", f"{_EXACT}/close/{{batch_id}}", "carlyleCloseExact", "Close a batch", _close_exact,
        "CarlyleClosed", errors=_GONE,
    ),
    Route(
        "POST", f"{_EXACT}/items", "carlyleAddExact", "Add items", _add_exact, "CarlyleGroups",
        body="CarlyleItems", errors=(*_GONE, BatchClosed),
    ),
    Route(
        "POST", f"{_EXACT}/items/ack", "carlyleAckExact", "Acknowledge items", _ack_exact,
        "CarlyleCompletions", body="CarlyleAcks", errors=_GONE,
    ),
    Route(
        "DELETE", f"{_EXACT}/open", "carlyleDeleteOpen", "Delete open batches", _delete_open,
        "CarlyleRemoved", required=_SINCE,
    ),
    Route(
        "DELETE", f"{_EXACT}/closed", "carlyleDeleteClosed", "Delete closed batches", _delete_closed,
        "CarlyleRemoved", required=_SINCE,
    ),
    Route(
        "POST", _ESTIMATED, "carlyleCreateEstimated", "Create a batch", _create_estimated,
        "CarlyleEstimatedCreated", body="CarlyleCreate",
    ),
    Route(
        "GET", f"{_ESTIMATED}/{{batch_id}}", "carlyleGetEstimated", "A batch", _get_estimated,
        "CarlyleEstimatedBatch", errors=_GONE,
    ),
    Route(
        "DELETE", f"{_ESTIMATED}/{{batch_id}}", "carlyleDeleteEstimated", "Delete a batch",
        _delete_estimated, None, 204, errors=_GONE,
    ),
    Route(
        "POST", f"{_ESTIMATED}/{{batch_id}}/close", "carlyleCloseEstimated", "Close a batch",
        _close_estimated, "CarlyleCompletion", errors=_GONE,
    ),
    Route(
        "POST", f"{_ESTIMATED}/{{batch_id}}/incr", "carlyleIncrement", "Add messages", _increment, None, 204,
        required={"by": whole(1, MAX_COUNT)}, errors=(*_GONE, BatchClosed),
    ),
    Route(
        "POST", f"{_ESTIMATED}/decr", "carlyleDecrement", "Acknowledge messages", _decrement,
        "CarlyleResults", body="CarlyleDecrements", errors=_GONE,
    ),
)
# fmt: on
