"""The routes of batches, acknowledgements and failures."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Ledger
from fanin.domain.access import AccessGroup
from fanin.entry.http import results
from fanin.entry.http.calls import Call
from fanin.entry.http.route import MAX_MARKS_BODY, HttpRequest, HttpRoute, LoggedAction
from fanin.entry.http.v1.parameters import CURSOR, KEY, batch_made, paged
from fanin.errors import (
    GONE,
    BatchClosed,
    ChannelRefused,
    FailureNotFound,
    IdempotencyKeyReused,
    ItemDone,
    ItemHasChild,
    KeyNotFound,
    LimitReached,
    MaxItemsReached,
    OutcomeUnknown,
)
from fanin.wire import batches, items, marks
from fanin.wire.batches import TARGET_REPORTS
from fanin.wire.json_types import BATCH_ID, BOOLEAN, NATURAL, TIME
from fanin.wire.redrives import SELECTION

_ROOT: Final = f"{names.API_ROOT}/batches"
_BATCH: Final = _ROOT + "/{batch_id}"


def _only_reads(request: HttpRequest) -> bool:
    return not request.query.get("repair", True)


# fmt: off
ROUTES: Final = (
    HttpRoute(
        "POST", _ROOT, "openBatch", "Open a batch", Call(Ledger.open, "request"), batches.BATCH, 201,
        body=batches.OPEN_BATCH, headers=KEY,
        errors=(*GONE, ChannelRefused, IdempotencyKeyReused, ItemHasChild),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=batch_made,
    ),
    HttpRoute(
        "GET", _ROOT, "listBatches", "List batches by state, by user key or by parent",
        Call(Ledger.list), batches.BATCHES, errors=GONE,
        optional={
            "state": batches.STATE,
            "user_key": batches.USER_KEY,
            "parent": BATCH_ID,
            **paged(),
        },
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{names.API_ROOT}/counts", "countBatches", "How many batches are in each state",
        Call(Ledger.counts), batches.BATCH_COUNTS,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "DELETE", _ROOT, "expireBatches", "Orphan live batches without activity, remove ended ones",
        Call(Ledger.expire), batches.EXPIRED, required={"state": batches.STATE, "idle_since": TIME},
        optional={"cursor": CURSOR},
        action=LoggedAction(results.of_expiry),
        group=AccessGroup.ADMINISTER,
    ),
    HttpRoute(
        "GET", _BATCH, "getBatch", "A batch and how many of its items are done",
        Call(Ledger.status), batches.PROGRESS,
        optional={
            "exact": BOOLEAN.with_keywords(default=False),
            "brief": BOOLEAN.with_keywords(default=False, description="read the batch only; count nothing"),
        },
        errors=GONE,
        group=AccessGroup.READ, also=(AccessGroup.PRODUCE, AccessGroup.CONSUME),
    ),
    HttpRoute(
        "DELETE", _BATCH, "removeBatch", "Remove an ended batch",
        Call(Ledger.remove), batches.EXPIRED, errors=GONE,
        action=LoggedAction(results.of_expiry),
        group=AccessGroup.ADMINISTER,
    ),
    HttpRoute(
        "POST", f"{_BATCH}/items", "addItems", "Add items: one block of ids, however many",
        Call(Ledger.add, "count", "item"), batches.GROUP, 201, body=batches.ADD_ITEMS, headers=KEY,
        errors=(
            *GONE, BatchClosed, ItemDone, MaxItemsReached, LimitReached, IdempotencyKeyReused, OutcomeUnknown,
        ),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=batch_made,
    ),
    HttpRoute(
        "POST", f"{_BATCH}/keys", "addKeys", "Add an item for each key that has none",
        Call(Ledger.add_keys, "keys", "item"), batches.KEYED_ITEMS, body=batches.ADD_KEYS,
        errors=(*GONE, BatchClosed, ItemDone, MaxItemsReached, LimitReached),
        data_path=True,
        group=AccessGroup.PRODUCE,
    ),
    HttpRoute(
        "GET", f"{_BATCH}/keys", "findKey", "The item of a key",
        Call(Ledger.find_key), batches.KEYED_ITEM,
        required={"key_of_item": batches.KEY_OF_ITEM}, errors=(*GONE, KeyNotFound),
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "POST", f"{_BATCH}/close", "closeBatch", "Close a batch to further items", Call(Ledger.close),
        batches.BATCH, errors=GONE,
        optional={"when": batches.CLOSE_WHEN.with_keywords(default="now")},
        action=LoggedAction(results.of_batch),
        group=AccessGroup.PRODUCE, also=(AccessGroup.OPERATE,),
    ),
    HttpRoute(
        "POST", f"{_BATCH}/cancel", "cancelBatch", "End a batch that nobody wants any more",
        Call(Ledger.cancel),
        batches.BATCH, errors=GONE,
        action=LoggedAction(results.of_batch),
        group=AccessGroup.OPERATE, also=(AccessGroup.PRODUCE,),
    ),
    HttpRoute(
        "POST", f"{_BATCH}/limits", "changeLimits", "Change limits of a live batch",
        Call(Ledger.change, "change"),
        batches.BATCH, body=batches.CHANGE_LIMITS, errors=GONE,
        action=LoggedAction(results.of_batch),
        group=AccessGroup.OPERATE,
    ),
    HttpRoute(
        "POST", f"{_BATCH}/release", "releaseItems", "Give held items up: mark them as failed",
        Call(Ledger.release, "selection"),
        batches.RELEASED, body=SELECTION, optional={"cursor": CURSOR}, errors=GONE,
        action=LoggedAction(results.of_release),
        group=AccessGroup.OPERATE,
    ),
    HttpRoute(
        "GET", f"{_BATCH}/missing", "listMissing", "Ranges of items not done",
        Call(Ledger.missing), items.MISSING,
        optional=paged(), errors=GONE,
        group=AccessGroup.READ, also=(AccessGroup.PRODUCE,),
    ),
    HttpRoute(
        "GET", f"{_BATCH}/results", "listResults", "Results of items that are done",
        Call(Ledger.results), items.RESULTS,
        optional=paged(), errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{_BATCH}/failures", "listFailures", "Failed items and why",
        Call(Ledger.failures), items.FAILED_ITEMS,
        optional=paged(), errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{_BATCH}/failures/{{ordinal}}", "getFailure", "A failed item and its message",
        Call(Ledger.failure),
        items.FAILED_MESSAGE, named={"ordinal": NATURAL}, errors=(*GONE, FailureNotFound),
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{_BATCH}/errors", "listErrors", "Failed items by error, the most frequent first",
        Call(Ledger.errors),
        items.ERRORS, optional={"cursor": CURSOR}, errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{_BATCH}/targets", "listTargets", "Who is told of the end, and how far each is",
        Call(Ledger.targets),
        TARGET_REPORTS, errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "POST", f"{_BATCH}/targets/redeliver", "redeliverTargets", "Tell targets again that were not told",
        Call(Ledger.redeliver), TARGET_REPORTS, errors=GONE,
        action=LoggedAction(results.of_targets),
        group=AccessGroup.OPERATE,
    ),
    HttpRoute(
        "POST", f"{_BATCH}/verify", "verifyBatch", "Recompute what is done from the items up, and repair it",
        Call(Ledger.verify),
        batches.VERDICT, optional={"cursor": CURSOR, "repair": BOOLEAN.with_keywords(default=True)},
        errors=GONE,
        action=LoggedAction(results.of_verdict, unless=_only_reads),
        group=AccessGroup.OPERATE,
    ),
    HttpRoute(
        "POST", f"{names.API_ROOT}/acks", "markItems", "Mark items done or failed, of any number of batches",
        Call(Ledger.mark, "marks"), marks.MARKED, body=marks.MARKS, most_bytes=MAX_MARKS_BODY,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
