"""Shapes of batches: what opens one, what it is, how far it is, and who is called back at its end."""

from typing import Final

from fanin.domain import batch, ids, limits, reports, targets
from fanin.domain.failures import Keep, Tolerance
from fanin.domain.totals import MAX_TOTALS, NAME
from fanin.wire import json_types as t
from fanin.wire.shapes import Inline, answer, plain, request

TARGET: Final = request(
    "Target",
    targets.Target,
    type=t.one_of(targets.TargetType),
    when=t.one_of(targets.When).described(
        "complete: ended complete and no item failed; failed: every other end; before the end:"
        " failing, waiting (only held items are left), progress (each milestone)"
    ),
    task_token=t.or_null(t.text(targets.MAX_TASK_TOKEN, least=1)).described("with type step_functions"),
    callback_id=t.or_null(t.text(targets.MAX_CALLBACK_ID, least=1)).with_keywords(
        pattern=f"^{targets.CALLBACK_ID}$", description="with type durable_callback"
    ),
    queue_url=t.or_null(t.CHANNEL).described(
        "with type sqs: URL or ARN of a standard queue with the tag fanin:channel"
    ),
    url=t.or_null(t.text(targets.MAX_URL, least=1)).described("with type webhook: an https URL"),
)
ON_END: Final = t.many(TARGET, targets.MAX_TARGETS).with_keywords(**{t.INDIVISIBLE: True}).left_out_if_empty()
TARGET_REPORT: Final = answer("TargetReport", targets.TargetReport, failing_since=t.or_null(t.TIME))
TARGET_REPORTS: Final = answer("TargetReports", targets.TargetReports)


STATE: Final = t.one_of(batch.State)
USER_KEY: Final = t.text(limits.MAX_USER_KEY, least=1)
"""A user key that batches are looked for by."""

_NAME_OF_TOTAL: Final = t.TEXT.with_keywords(pattern=f"^{NAME}$")
TOTAL_NAMES: Final = (
    t.many(_NAME_OF_TOTAL, MAX_TOTALS).with_keywords(**{t.INDIVISIBLE: True}).left_out_if_empty()
)
"""Names of the totals that a batch is opened with."""
TOLERANCE: Final = request(
    "Tolerance",
    Tolerance,
    count=t.or_null(t.whole(0, ids.MAX_ITEMS)),
    percent=t.or_null(t.number(0, 100)),
    min_sample=t.or_null(t.whole(1, ids.MAX_ITEMS)),
)

MILESTONES: Final = t.many(t.whole(1, batch.WHOLE), batch.MAX_MILESTONES).described(
    "percents of its items at which Batch Progress is told", **{t.INDIVISIBLE: True}
)
OPEN_BATCH: Final = request(
    "OpenBatch",
    batch.OpenBatch,
    user_key=t.text(limits.MAX_USER_KEY),
    mode=t.one_of(batch.Mode),
    idle_ttl=t.or_null(t.whole(limits.MIN_IDLE_TTL, limits.MAX_LIFETIME)),
    lifetime=t.or_null(t.whole(limits.MIN_LIFETIME, limits.MAX_LIFETIME)),
    deadline=t.or_null(t.TIME),
    on_deadline=t.one_of(batch.OnDeadline),
    limit=t.or_null(t.whole(1, limits.MAX_LIMIT)),
    parent_item=t.or_null(t.ITEM_ID),
    retry_of=t.or_null(t.BATCH_ID),
    stall_after=t.or_null(t.whole(0, limits.MAX_LIFETIME)),
    metadata=t.METADATA,
    keep=t.or_null(t.one_of(Keep)),
    on_failure=t.one_of(batch.OnFailure).left_out_if(batch.OnFailure.DONE),
    child_failures=t.one_of(batch.ChildFailures).left_out_if(batch.ChildFailures.FAIL),
    tolerated_failures=TOLERANCE,
    on_end=ON_END,
    totals=TOTAL_NAMES,
    results=t.BOOLEAN.left_out_if(False),
    max_items=t.or_null(t.whole(1, ids.MAX_ITEMS)),
    milestones=MILESTONES.left_out_if_empty(),
)
CHANGE_LIMITS: Final = request(
    "ChangeLimits",
    batch.ChangeLimits,
    deadline=t.or_null(t.TIME),
    tolerated_failures=TOLERANCE,
    stall_after=t.or_null(t.whole(0, limits.MAX_LIFETIME)),
    milestones=t.or_null(MILESTONES),
)
BATCH: Final = answer(
    "Batch",
    batch.Batch,
    "batch_id state mode kind user_key items acked failed failed_more held held_more partial created_at"
    " touched_at closed_at ended_at expires_at open_idle_ttl closed_idle_ttl deadline on_deadline limit"
    " parent_item retry_of stall_after metadata keep on_failure child_failures tolerated_failures cause"
    " targets totals totals_exact totals_before results opened_by attention draining_at max_items grown keyed"
    " milestones milestone failing_at waiting_at",
    without={"salt": b""},
    shown={"touched_at": "active_at", "held_more": "may_hold_more", "attention": "trouble"},
    batch_id=t.BATCH_ID,
    acked=t.NATURAL.described(
        "marks that the row of an estimated batch has counted; absent if there are none"
    ).left_out_if_empty(),
    expires_at=t.TIME_IN_SECONDS,
    deadline=t.or_null(t.TIME),
    parent_item=t.or_null(t.ITEM_ID),
    retry_of=t.or_null(t.BATCH_ID),
    attention=t.or_null(t.one_of(batch.Trouble)).described("why a person should look at it"),
    milestones=MILESTONES,
)
"""A batch as callers see it: without its salt and its bookkeeping."""
BATCHES: Final = answer("BatchPage", reports.Batches)
BATCH_COUNTS: Final = answer("BatchCounts", reports.BatchCounts)
TROUBLED: Final = answer("Troubled", reports.Troubled, batch=Inline(BATCH))
ATTENTION: Final = answer("Attention", reports.Attention)
_DOLLARS: Final = t.number(0, 1e15)
COST: Final = answer("Cost", reports.Estimate, dollars=_DOLLARS, at_least=_DOLLARS, at_most=_DOLLARS)
PROGRESS: Final = answer("Progress", reports.Progress, batch=Inline(BATCH))
CLOSE_WHEN: Final = t.one_of(batch.CloseWhen)
ADD_ITEMS: Final = plain(
    "AddItems",
    {"count": t.whole(1, ids.MAX_COUNT)},
    {"item": t.ITEM_ID.described("the pending item of the batch that adds them")},
)
KEY_OF_ITEM: Final = t.text(ids.MAX_KEY, least=1).described(f"1 to {ids.MAX_KEY} bytes in UTF-8")
ITEM_KEY: Final = request("ItemKey", ids.ItemKey, key=KEY_OF_ITEM, payload=t.text(ids.MAX_DIGEST))
ADD_KEYS: Final = request(
    "AddKeys",
    ids.AddKeys,
    keys=t.many(ITEM_KEY, ids.MAX_KEYS),
    item=t.or_null(t.ITEM_ID).described("the pending item of the batch that adds them"),
)
KEYED_ITEM: Final = answer("KeyedItem", ids.KeyedItem)
KEYED_ITEMS: Final = answer("KeyedItems", ids.KeyedItems)
GROUP: Final = answer("Group", ids.Group, batch_id=t.BATCH_ID, id=t.UUID, upto=t.whole(1, ids.MAX_COUNT))
EXPIRED: Final = answer("Expired", reports.Expired)
VERDICT: Final = answer("Verdict", reports.Verdict)
RELEASED: Final = answer("ReleasedItems", reports.ReleasedItems)
