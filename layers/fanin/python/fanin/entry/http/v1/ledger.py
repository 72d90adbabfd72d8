"""The routes of fanin's own API: batches, acknowledgements, failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fanin import names
from fanin.app.services import Services
from fanin.domain import limits
from fanin.domain.acks import Receipt
from fanin.domain.batch import State
from fanin.domain.ids import parse_batch_id
from fanin.entry.http.route import Request, Route
from fanin.entry.http.schemas import BOOLEAN, IDEMPOTENCY_KEY, STATE, TIME, Schema, text, whole
from fanin.entry.observe import count, count_receipts
from fanin.errors import BatchClosed, BatchGone, BatchNotFound, IdempotencyKeyReused, LimitReached
from fanin.wire import ledger as wire
from fanin.wire import reports as wire_reports
from fanin.wire.ledger import Json

_ROOT: Final = f"{names.API_ROOT}/batches"
_BATCH: Final = _ROOT + "/{batch_id}"
_GONE: Final = (BatchNotFound, BatchGone)

_CURSOR: Final = text(least=1) | {"description": "from the page before"}
_PAGE: Final[dict[str, Schema]] = {"cursor": _CURSOR, "limit": whole(1, limits.MAX_PAGE) | {"default": 100}}


def _batch_id(request: Request) -> int:
    return parse_batch_id(request.path["batch_id"])


def _open(services: Services, request: Request) -> Json:
    key = request.headers.get(names.IDEMPOTENCY_HEADER)
    return wire.encode_batch(services.ledger.open(wire.decode_open(request.body), key=key))


def _list(services: Services, request: Request) -> Json:
    return wire_reports.encode_batches(services.ledger.list(State(request.query["state"]), **_page(request)))


def _expire(services: Services, request: Request) -> Json:
    idle_since = wire.decode_time(request.query["idle_since"])
    return wire_reports.encode_expired(
        services.ledger.expire(State(request.query["state"]), idle_since=idle_since)
    )


def _status(services: Services, request: Request) -> Json:
    exact = request.query.get("exact", False)
    return wire_reports.encode_progress(services.ledger.status(_batch_id(request), exact=exact))


def _add(services: Services, request: Request) -> Json:
    key = request.headers.get(names.IDEMPOTENCY_HEADER)
    return wire.encode_group(services.ledger.add(_batch_id(request), request.body["count"], key=key))


def _close(services: Services, request: Request) -> Json:
    return wire.encode_batch(services.ledger.close(_batch_id(request)))


def _cancel(services: Services, request: Request) -> Json:
    return wire.encode_batch(services.ledger.cancel(_batch_id(request)))


def _missing(services: Services, request: Request) -> Json:
    return wire_reports.encode_missing(services.ledger.missing(_batch_id(request), **_page(request)))


def _failures(services: Services, request: Request) -> Json:
    return wire_reports.encode_failures(services.ledger.failures(_batch_id(request), **_page(request)))


def _verify(services: Services, request: Request) -> Json:
    query = request.query
    verdict = services.ledger.verify(
        _batch_id(request), cursor=query.get("cursor"), repair=query.get("repair", True)
    )
    return wire_reports.encode_verdict(verdict)


def _ack(services: Services, request: Request) -> Json:
    acks = wire.decode_acks(request.body)
    receipts = services.ledger.ack(acks.items, ranges=acks.ranges, counts=acks.counts)
    count_receipts(receipts)
    return wire.encode_receipts(receipts)


def _fail(services: Services, request: Request) -> Json:
    receipts: Sequence[Receipt] = services.ledger.fail(wire.decode_acks(request.body).failures)
    count(names.METRIC_FAILED, sum(receipt.first for receipt in receipts))
    return wire.encode_receipts(receipts)


def _page(request: Request) -> Json:
    return {"cursor": request.query.get("cursor"), "limit": request.query.get("limit", 100)}


# fmt: off
ROUTES: Final = (
    Route(
        "POST", _ROOT, "openBatch", "Open a batch", _open, "Batch", 201,
        body="OpenBatch", headers={names.IDEMPOTENCY_HEADER: IDEMPOTENCY_KEY},
        errors=(*_GONE, IdempotencyKeyReused),
    ),
    Route(
        "GET", _ROOT, "listBatches", "List the batches of a state", _list, "Batches",
        required={"state": STATE}, optional=_PAGE,
    ),
    Route(
        "DELETE", _ROOT, "expireBatches", "Orphan live batches without activity, remove ended ones",
        _expire, "Expired", required={"state": STATE, "idle_since": TIME},
    ),
    Route(
        "GET", _BATCH, "getBatch", "A batch and how many of its items are done", _status, "Progress",
        optional={"exact": BOOLEAN | {"default": False}}, errors=_GONE,
    ),
    Route(
        "POST", f"{_BATCH}/items", "addItems", "Add items: one block of ids, however many",
        _add, "Group", 201, body="AddItems", headers={names.IDEMPOTENCY_HEADER: IDEMPOTENCY_KEY},
        errors=(*_GONE, BatchClosed, LimitReached, IdempotencyKeyReused),
    ),
    Route("POST", f"{_BATCH}/close", "closeBatch", "Take no more items", _close, "Batch", errors=_GONE),
    Route(
        "POST", f"{_BATCH}/cancel", "cancelBatch", "End a batch that nobody wants", _cancel, "Batch",
        errors=_GONE,
    ),
    Route(
        "GET", f"{_BATCH}/missing", "listMissing", "Ranges of items not done", _missing, "Missing",
        optional=_PAGE, errors=_GONE,
    ),
    Route(
        "GET", f"{_BATCH}/failures", "listFailures", "Failed items and why", _failures, "FailedItems",
        optional=_PAGE, errors=_GONE,
    ),
    Route(
        "POST", f"{_BATCH}/verify", "verifyBatch", "Recompute the verdict, and put right what disagrees",
        _verify, "Verdict", optional={"cursor": _CURSOR, "repair": BOOLEAN | {"default": True}}, errors=_GONE,
    ),
    Route(
        "POST", f"{names.API_ROOT}/acks", "ackItems", "Mark items done, of any number of batches",
        _ack, "Receipts", body="Acks", errors=_GONE,
    ),
    Route(
        "POST", f"{names.API_ROOT}/failures", "failItems", "Mark items done as failed, with a reason",
        _fail, "Receipts", body="Failures", errors=_GONE,
    ),
)
# fmt: on
