"""The routes of batches, acknowledgements and failures."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain.access import AccessGroup
from fanin.domain.batch import Batch
from fanin.domain.ids import Group
from fanin.domain.marks import Marked
from fanin.domain.reports import (
    Batches,
    Errors,
    Expired,
    FailedMessage,
    Failures,
    Missing,
    Progress,
    ReleasedItems,
    Verdict,
)
from fanin.domain.targets import TargetReports
from fanin.entry.http import results
from fanin.entry.http.route import MAX_MARKS_BODY, LoggedAction, Request, Route
from fanin.entry.http.v1.parameters import CURSOR, GONE, KEY, batch_made, ordinal_in, page_of, paged
from fanin.entry.observe import count, count_receipts
from fanin.errors import (
    BatchClosed,
    ChannelRefused,
    FailureNotFound,
    IdempotencyKeyReused,
    ItemHasChild,
    LimitReached,
    OutcomeUnknown,
)
from fanin.wire import batches, items, marks
from fanin.wire.json_types import BOOLEAN, NATURAL, TIME
from fanin.wire.selections import SELECTION
from fanin.wire.targets import TARGET_REPORTS

_ROOT: Final = f"{names.API_ROOT}/batches"
_BATCH: Final = _ROOT + "/{batch_id}"


def _open(fanin: Fanin, request: Request) -> Batch:
    return fanin.ledger.open(request.read(), key=request.key, caller=request.caller)


def _list(fanin: Fanin, request: Request) -> Batches:
    query = request.query
    return fanin.ledger.list(query.get("state"), user_key=query.get("user_key"), **page_of(request))


def _expire(fanin: Fanin, request: Request) -> Expired:
    return fanin.ledger.expire(**request.query)


def _remove(fanin: Fanin, request: Request) -> Expired:
    return fanin.ledger.remove(request.batch_id)


def _status(fanin: Fanin, request: Request) -> Progress:
    return fanin.ledger.status(request.batch_id, **request.query)


def _add(fanin: Fanin, request: Request) -> Group:
    return fanin.ledger.add(request.batch_id, request.body["count"], key=request.key, caller=request.caller)


def _close(fanin: Fanin, request: Request) -> Batch:
    return fanin.ledger.close(request.batch_id)


def _cancel(fanin: Fanin, request: Request) -> Batch:
    return fanin.ledger.cancel(request.batch_id)


def _release(fanin: Fanin, request: Request) -> ReleasedItems:
    released = fanin.ledger.release(request.batch_id, request.read(), **request.query)
    count(names.METRIC_RELEASED, released.released)
    return released


def _targets(fanin: Fanin, request: Request) -> TargetReports:
    return fanin.ledger.targets(request.batch_id)


def _redeliver(fanin: Fanin, request: Request) -> TargetReports:
    return fanin.ledger.redeliver(request.batch_id)


def _missing(fanin: Fanin, request: Request) -> Missing:
    return fanin.ledger.missing(request.batch_id, **page_of(request))


def _failures(fanin: Fanin, request: Request) -> Failures:
    return fanin.ledger.failures(request.batch_id, **page_of(request))


def _failure(fanin: Fanin, request: Request) -> FailedMessage:
    return fanin.ledger.failure(request.batch_id, ordinal_in(request.path["ordinal"]))


def _errors(fanin: Fanin, request: Request) -> Errors:
    return fanin.ledger.errors(request.batch_id, **request.query)


def _verify(fanin: Fanin, request: Request) -> Verdict:
    return fanin.ledger.verify(request.batch_id, **request.query)


def _only_reads(request: Request) -> bool:
    return not request.query.get("repair", True)


def _mark(fanin: Fanin, request: Request) -> Marked:
    marked = fanin.ledger.mark(request.read())
    count_receipts(marked.receipts)
    return marked


# fmt: off
ROUTES: Final = (
    Route(
        "POST", _ROOT, "openBatch", "Open a batch", _open, batches.BATCH, 201,
        body=batches.OPEN_BATCH, headers=KEY,
        errors=(*GONE, ChannelRefused, IdempotencyKeyReused, ItemHasChild),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=batch_made,
    ),
    Route(
        "GET", _ROOT, "listBatches", "List batches by state, by user key, or by both", _list, batches.BATCHES,
        optional={"state": batches.STATE, "user_key": batches.USER_KEY, **paged()},
        group=AccessGroup.READ,
    ),
    Route(
        "DELETE", _ROOT, "expireBatches", "Orphan live batches without activity, remove ended ones",
        _expire, batches.EXPIRED, required={"state": batches.STATE, "idle_since": TIME},
        optional={"cursor": CURSOR},
        action=LoggedAction(results.of_expiry),
        group=AccessGroup.ADMINISTER,
    ),
    Route(
        "GET", _BATCH, "getBatch", "A batch and how many of its items are done", _status, batches.PROGRESS,
        optional={
            "exact": BOOLEAN.with_keywords(default=False),
            "brief": BOOLEAN.with_keywords(default=False, description="read the batch only; count nothing"),
        },
        errors=GONE,
        group=AccessGroup.READ, also=(AccessGroup.PRODUCE, AccessGroup.CONSUME),
    ),
    Route(
        "DELETE", _BATCH, "removeBatch", "Remove an ended batch", _remove, batches.EXPIRED, errors=GONE,
        action=LoggedAction(results.of_expiry),
        group=AccessGroup.ADMINISTER,
    ),
    Route(
        "POST", f"{_BATCH}/items", "addItems", "Add items: one block of ids, however many",
        _add, batches.GROUP, 201, body=batches.ADD_ITEMS, headers=KEY,
        errors=(*GONE, BatchClosed, LimitReached, IdempotencyKeyReused, OutcomeUnknown),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=batch_made,
    ),
    Route(
        "POST", f"{_BATCH}/close", "closeBatch", "Close a batch to further items", _close,
        batches.BATCH, errors=GONE,
        action=LoggedAction(results.of_batch),
        group=AccessGroup.PRODUCE, also=(AccessGroup.OPERATE,),
    ),
    Route(
        "POST", f"{_BATCH}/cancel", "cancelBatch", "End a batch that nobody wants any more", _cancel,
        batches.BATCH, errors=GONE,
        action=LoggedAction(results.of_batch),
        group=AccessGroup.OPERATE, also=(AccessGroup.PRODUCE,),
    ),
    Route(
        "POST", f"{_BATCH}/release", "releaseItems", "Give held items up: mark them as failed",
        _release, batches.RELEASED, body=SELECTION, optional={"cursor": CURSOR}, errors=GONE,
        action=LoggedAction(results.of_release),
        group=AccessGroup.OPERATE,
    ),
    Route(
        "GET", f"{_BATCH}/missing", "listMissing", "Ranges of items not done", _missing, items.MISSING,
        optional=paged(), errors=GONE,
        group=AccessGroup.READ, also=(AccessGroup.PRODUCE,),
    ),
    Route(
        "GET", f"{_BATCH}/failures", "listFailures", "Failed items and why", _failures, items.FAILED_ITEMS,
        optional=paged(), errors=GONE,
        group=AccessGroup.READ,
    ),
    Route(
        "GET", f"{_BATCH}/failures/{{ordinal}}", "getFailure", "A failed item and its message", _failure,
        items.FAILED_MESSAGE, named={"ordinal": NATURAL}, errors=(*GONE, FailureNotFound),
        group=AccessGroup.READ,
    ),
    Route(
        "GET", f"{_BATCH}/errors", "listErrors", "Failed items by error, the most frequent first", _errors,
        items.ERRORS, optional={"cursor": CURSOR}, errors=GONE,
        group=AccessGroup.READ,
    ),
    Route(
        "GET", f"{_BATCH}/targets", "listTargets", "Who is told of the end, and how far each is", _targets,
        TARGET_REPORTS, errors=GONE,
        group=AccessGroup.READ,
    ),
    Route(
        "POST", f"{_BATCH}/targets/redeliver", "redeliverTargets", "Tell targets again that are parked",
        _redeliver, TARGET_REPORTS, errors=GONE,
        action=LoggedAction(results.of_targets),
        group=AccessGroup.OPERATE,
    ),
    Route(
        "POST", f"{_BATCH}/verify", "verifyBatch", "Recompute what is done from the items up, and repair it",
        _verify, batches.VERDICT, optional={"cursor": CURSOR, "repair": BOOLEAN.with_keywords(default=True)},
        errors=GONE,
        action=LoggedAction(results.of_verdict, unless=_only_reads),
        group=AccessGroup.OPERATE,
    ),
    Route(
        "POST", f"{names.API_ROOT}/acks", "markItems", "Mark items done or failed, of any number of batches",
        _mark, marks.MARKED, body=marks.MARKS, most_bytes=MAX_MARKS_BODY,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
