"""The routes of batches, acknowledgements and failures."""

from typing import Final

from fanin import errors, names
from fanin.app.api import Ledger
from fanin.domain.access import AccessGroup
from fanin.entry.http import results
from fanin.entry.http.calls import Call
from fanin.entry.http.route import (
    CURSOR,
    MAX_MARKS_BODY,
    HttpRoute,
    LoggedAction,
    batch_made,
    consumes,
    operates,
    paged,
    produces,
    reads,
)
from fanin.wire import batches, items, marks
from fanin.wire.batches import TARGET_REPORTS
from fanin.wire.json_types import BATCH_ID, BOOLEAN, NATURAL, TIME
from fanin.wire.redrives import SELECTION

_ROOT: Final = f"{names.API_ROOT}/batches"
_BATCH: Final = _ROOT + "/{batch_id}"
_NOT_ADDED: Final = (errors.BatchClosed, errors.ItemDone, errors.MaxItemsReached, errors.LimitReached)


# fmt: off
ROUTES: Final = (
    produces(
        "POST", _ROOT, "openBatch", Call(Ledger.open, "request"), batches.BATCH, 201, body=batches.OPEN_BATCH,
        keyed=True, location=batch_made,
        errors=(*errors.GONE, errors.ChannelRefused, errors.IdempotencyKeyReused, errors.ItemHasChild),
    ),
    reads(
        _ROOT, "listBatches", Call(Ledger.list), batches.BATCHES, errors=errors.GONE,
        optional={"state": batches.STATE, "user_key": batches.USER_KEY, "parent": BATCH_ID, **paged()},
    ),
    reads(f"{names.API_ROOT}/counts", "countBatches", Call(Ledger.counts), batches.BATCH_COUNTS),
    HttpRoute(
        "DELETE", _ROOT, "expireBatches", Call(Ledger.expire), batches.EXPIRED,
        required={"state": batches.STATE, "idle_since": TIME}, optional={"cursor": CURSOR},
        action=LoggedAction(results.of_expiry),
    ),
    reads(
        _BATCH, "getBatch", Call(Ledger.status), batches.PROGRESS,
        optional={
            "exact": BOOLEAN.with_keywords(default=False),
            "brief": BOOLEAN.with_keywords(default=False, description="read the batch only; count nothing"),
        },
        also=(AccessGroup.PRODUCE, AccessGroup.CONSUME),
    ),
    HttpRoute(
        "DELETE", _BATCH, "removeBatch", Call(Ledger.remove), batches.EXPIRED,
        action=LoggedAction(results.of_expiry),
    ),
    produces(
        "POST", f"{_BATCH}/items", "addItems", Call(Ledger.add, "count", "item"), batches.GROUP, 201,
        body=batches.ADD_ITEMS, keyed=True,
        errors=(*_NOT_ADDED, errors.IdempotencyKeyReused, errors.OutcomeUnknown),
        location=batch_made,
    ),
    produces(
        "POST", f"{_BATCH}/keys", "addKeys", Call(Ledger.add_keys, "keys", "item"), batches.KEYED_ITEMS,
        body=batches.ADD_KEYS, errors=_NOT_ADDED,
    ),
    reads(
        f"{_BATCH}/keys", "findKey", Call(Ledger.find_key), batches.KEYED_ITEM,
        required={"key_of_item": batches.KEY_OF_ITEM}, errors=(errors.KeyNotFound,),
    ),
    produces(
        "POST", f"{_BATCH}/close", "closeBatch", Call(Ledger.close), batches.BATCH,
        optional={"when": batches.CLOSE_WHEN.with_keywords(default="now")},
        action=LoggedAction(results.of_batch), also=(AccessGroup.OPERATE,),
    ),
    operates(
        "POST", f"{_BATCH}/cancel", "cancelBatch", Call(Ledger.cancel), batches.BATCH,
        action=LoggedAction(results.of_batch), also=(AccessGroup.PRODUCE,),
    ),
    operates(
        "POST", f"{_BATCH}/limits", "changeLimits", Call(Ledger.change, "change"), batches.BATCH,
        body=batches.CHANGE_LIMITS, action=LoggedAction(results.of_batch),
    ),
    operates(
        "POST", f"{_BATCH}/release", "releaseItems", Call(Ledger.release, "selection"), batches.RELEASED,
        body=SELECTION, optional={"cursor": CURSOR}, action=LoggedAction(results.of_release),
    ),
    reads(
        f"{_BATCH}/missing", "listMissing", Call(Ledger.missing), items.MISSING, optional=paged(),
        also=(AccessGroup.PRODUCE,),
    ),
    reads(f"{_BATCH}/results", "listResults", Call(Ledger.results), items.RESULTS, optional=paged()),
    reads(f"{_BATCH}/failures", "listFailures", Call(Ledger.failures), items.FAILED_ITEMS, optional=paged()),
    reads(
        f"{_BATCH}/failures/{{ordinal}}", "getFailure", Call(Ledger.failure), items.FAILED_MESSAGE,
        named={"ordinal": NATURAL}, errors=(errors.FailureNotFound,),
    ),
    reads(f"{_BATCH}/errors", "listErrors", Call(Ledger.errors), items.ERRORS, optional={"cursor": CURSOR}),
    reads(f"{_BATCH}/targets", "listTargets", Call(Ledger.targets), TARGET_REPORTS),
    operates(
        "POST", f"{_BATCH}/targets/redeliver", "redeliverTargets", Call(Ledger.redeliver), TARGET_REPORTS,
        action=LoggedAction(results.of_targets),
    ),
    operates(
        "POST", f"{_BATCH}/verify", "verifyBatch", Call(Ledger.verify), batches.VERDICT,
        optional={"cursor": CURSOR, "repair": BOOLEAN.with_keywords(default=True)},
        action=LoggedAction(results.of_verdict, unless=lambda request: not request.query.get("repair", True)),
    ),
    consumes(
        "POST", f"{names.API_ROOT}/acks", "markItems", Call(Ledger.mark, "marks"), marks.MARKED,
        body=marks.MARKS, most_bytes=MAX_MARKS_BODY,
    ),
)
# fmt: on
