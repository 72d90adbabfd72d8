"""Shapes of batches: what opens one, what it is, how far it is, and who is called back at its end."""

from collections.abc import Mapping
from typing import Final

from fanin.domain import batch, ids, limits, reports, targets
from fanin.domain.failures import MIN_SAMPLE, Keep, Tolerance
from fanin.domain.totals import MAX_TOTALS, NAME
from fanin.wire import json_types as t
from fanin.wire.shapes import Inline, answer, plain, request

TARGET: Final = request(
    "Target",
    targets.Target,
    type=t.one_of(targets.TargetType),
    when=t.one_of(targets.When).with_keywords(
        description="complete: ended complete and no item failed; failed: every other end; before the end:"
        " failing, waiting (only held items are left), progress (each milestone)"
    ),
    task_token=t.or_null(t.text(targets.MAX_TASK_TOKEN, least=1)).with_keywords(
        description="with type step_functions"
    ),
    callback_id=t.or_null(t.text(targets.MAX_CALLBACK_ID, least=1)).with_keywords(
        pattern=f"^{targets.CALLBACK_ID}$", description="with type durable_callback"
    ),
    queue_url=t.or_null(t.text(limits.MAX_CHANNEL, least=1)).with_keywords(
        description="with type sqs: URL or ARN of a standard queue with the tag fanin:channel"
    ),
    url=t.or_null(t.text(targets.MAX_URL, least=1)).with_keywords(
        description="with type webhook: an https URL"
    ),
)
ON_END: Final = t.many(TARGET, targets.MAX_TARGETS).with_keywords(**{t.INDIVISIBLE: True}).left_out_if_empty()
TARGET_REPORT: Final = answer(
    "TargetReport",
    targets.TargetReport,
    number=t.NATURAL,
    type=t.one_of(targets.TargetType),
    when=t.one_of(targets.When),
    to=t.TEXT.with_keywords(description="where it points; tokens and the paths of URLs are masked"),
    state=t.one_of(targets.TargetState),
    attempts=t.NATURAL,
    last_error=t.or_null(t.TEXT),
    delivered_at=t.or_null(t.TIME),
    failing_since=t.or_null(t.TIME),
    next_at=t.or_null(t.TIME),
)
TARGET_REPORTS: Final = answer("TargetReports", targets.TargetReports, targets=t.many(TARGET_REPORT))


STATE: Final = t.one_of(batch.State)
USER_KEY: Final = t.text(limits.MAX_USER_KEY, least=1)
"""A user key that batches are looked for by."""

TOTALS: Final[t.JsonType[Mapping[str, int]]] = t.JsonType(
    {"type": "object", "additionalProperties": {"type": "integer"}}, dict, dict
)
"""Sums of totals by their names."""
TOTAL_NAMES: Final = (
    t.many(t.JsonType[str]({"type": "string", "pattern": f"^{NAME}$"}), MAX_TOTALS)
    .with_keywords(**{t.INDIVISIBLE: True})
    .left_out_if_empty()
)
"""Names of the totals that a batch is opened with."""
_KEEP: Final = t.one_of(Keep).with_keywords(
    description="what is kept of failed items: their messages, or their reasons alone"
)
TOLERANCE: Final = request(
    "Tolerance",
    Tolerance,
    count=t.or_null(t.whole(0, ids.MAX_ITEMS)),
    percent=t.or_null(t.number(0, 100)).with_keywords(description="of the items that are done"),
    min_sample=t.or_null(t.whole(1, ids.MAX_ITEMS)).with_keywords(
        description=f"items that are done before the percent counts; {MIN_SAMPLE} if left out"
    ),
)

MILESTONES: Final = t.many(t.whole(1, batch.WHOLE), batch.MAX_MILESTONES).with_keywords(
    description="percents of its items at which Batch Progress is told", **{t.INDIVISIBLE: True}
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
    keep=t.or_null(_KEEP),
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
    without={"salt": b""},
    shown={"touched_at": "active_at", "held_more": "may_hold_more", "attention": "trouble"},
    batch_id=t.BATCH_ID,
    state=STATE,
    mode=t.one_of(batch.Mode),
    kind=t.one_of(batch.Kind),
    user_key=t.TEXT,
    items=t.NATURAL,
    acked=t.NATURAL.with_keywords(
        description="marks that the row of an estimated batch has counted; absent if there are none"
    ).left_out_if_empty(),
    failed=t.NATURAL,
    failed_more=t.BOOLEAN,
    held=t.NATURAL,
    held_more=t.BOOLEAN,
    partial=t.BOOLEAN,
    created_at=t.TIME,
    touched_at=t.TIME,
    closed_at=t.or_null(t.TIME),
    ended_at=t.or_null(t.TIME),
    expires_at=t.TIME_IN_SECONDS,
    open_idle_ttl=t.NATURAL,
    closed_idle_ttl=t.NATURAL,
    deadline=t.or_null(t.TIME),
    on_deadline=t.one_of(batch.OnDeadline),
    limit=t.or_null(t.NATURAL),
    parent_item=t.or_null(t.ITEM_ID),
    retry_of=t.or_null(t.BATCH_ID),
    stall_after=t.NATURAL,
    metadata=t.string_map(),
    keep=_KEEP,
    on_failure=t.one_of(batch.OnFailure),
    child_failures=t.one_of(batch.ChildFailures),
    tolerated_failures=t.or_null(TOLERANCE),
    cause=t.or_null(t.one_of(batch.Cause)).with_keywords(
        enum=[*(one.value for one in batch.Cause), None],
        description="why it was cancelled although nobody asked for it",
    ),
    targets=t.NATURAL,
    totals=TOTALS,
    totals_exact=t.BOOLEAN.with_keywords(
        description="whether the totals are the sums of all items that are done, each counted once"
    ),
    totals_before=TOTALS.with_keywords(description="sums of the batches that it retries"),
    results=t.BOOLEAN.with_keywords(description="whether results of its items are kept"),
    opened_by=t.TEXT.with_keywords(
        description="who opened it: an AWS identity, a token's subject, a program's name; empty if unknown"
    ),
    attention=t.or_null(t.one_of(batch.Trouble)).with_keywords(
        enum=[*(one.value for one in batch.Trouble), None], description="why a person should look at it"
    ),
    draining_at=t.or_null(t.TIME),
    max_items=t.or_null(t.NATURAL),
    grown=t.NATURAL,
    keyed=t.NATURAL,
    milestones=MILESTONES,
    milestone=t.NATURAL.with_keywords(description="the last milestone that was told"),
    failing_at=t.or_null(t.TIME).with_keywords(description="when its first failure was told"),
    waiting_at=t.or_null(t.TIME).with_keywords(description="when it was told that only held items are left"),
)
"""A batch as callers see it: without its salt and its bookkeeping."""
BATCHES: Final = answer("BatchPage", reports.Batches, batches=t.many(BATCH), cursor=t.CURSOR)
BATCH_COUNTS: Final = answer(
    "BatchCounts",
    reports.BatchCounts,
    states=TOTALS.with_keywords(description="how many batches are in each state"),
    at_least=t.many(t.TEXT).with_keywords(description="states of which there are more than that"),
)
TROUBLED: Final = answer(
    "Troubled",
    reports.Troubled,
    batch=Inline(BATCH),
    trouble=t.one_of(batch.Trouble),
    reason=t.TEXT,
    action=t.TEXT.with_keywords(description="the command that helps: `fanin <action> <batch>`"),
)
ATTENTION: Final = answer(
    "Attention",
    reports.Attention,
    batches=t.many(TROUBLED),
    counts=TOTALS.with_keywords(description="how many batches there are in all, by what is wrong"),
    cursor=t.CURSOR,
    at_least=t.many(t.TEXT).with_keywords(description="what is wrong with more batches than that"),
)
_DOLLARS: Final = t.number(0, 1e15)
COST: Final = answer(
    "Cost",
    reports.Estimate,
    dollars=_DOLLARS.with_keywords(
        description="if the items were marked over HTTPS, any ten items a call, at list prices"
    ),
    at_least=_DOLLARS.with_keywords(description="if one range marked them"),
    at_most=_DOLLARS.with_keywords(description="if each was marked over HTTPS by itself"),
    region=t.TEXT.with_keywords(description="region whose list prices were taken"),
    since=t.TEXT.with_keywords(description="date of these prices"),
    estimate=t.BOOLEAN.with_keywords(description="always true: no row counts requests"),
)
PROGRESS: Final = answer(
    "Progress",
    reports.Progress,
    batch=Inline(BATCH),
    done_min=t.NATURAL,
    done_max=t.NATURAL,
    cost=t.or_null(COST),
)
CLOSE_WHEN: Final = t.one_of(batch.CloseWhen)
ADD_ITEMS: Final = plain(
    "AddItems",
    {"count": t.whole(1, ids.MAX_COUNT)},
    {"item": t.ITEM_ID.with_keywords(description="the pending item of the batch that adds them")},
)
KEY_OF_ITEM: Final = t.text(ids.MAX_KEY, least=1).with_keywords(
    description=f"1 to {ids.MAX_KEY} bytes in UTF-8"
)
ITEM_KEY: Final = request("ItemKey", ids.ItemKey, key=KEY_OF_ITEM, payload=t.text(ids.MAX_DIGEST))
ADD_KEYS: Final = request(
    "AddKeys",
    ids.AddKeys,
    keys=t.many(ITEM_KEY, ids.MAX_KEYS),
    item=t.or_null(t.ITEM_ID).with_keywords(description="the pending item of the batch that adds them"),
)
KEYED_ITEM: Final = answer(
    "KeyedItem",
    ids.KeyedItem,
    key=t.TEXT,
    item=t.TEXT,
    added=t.BOOLEAN,
    done=t.BOOLEAN,
    differs=t.BOOLEAN,
    send=t.BOOLEAN,
)
KEYED_ITEMS: Final = answer("KeyedItems", ids.KeyedItems, items=t.many(KEYED_ITEM))
GROUP: Final = answer(
    "Group",
    ids.Group,
    batch_id=t.BATCH_ID,
    id=t.UUID,
    upto=t.whole(1, ids.MAX_COUNT),
    again=t.BOOLEAN,
    sent=t.BOOLEAN,
)
EXPIRED: Final = answer("Expired", reports.Expired, batches=t.NATURAL, items=t.NATURAL, cursor=t.CURSOR)
VERDICT: Final = answer(
    "Verdict",
    reports.Verdict,
    batch=BATCH,
    pending=t.NATURAL,
    disagreements=t.many(t.TEXT),
    repaired=t.BOOLEAN,
    cursor=t.CURSOR,
)
RELEASED: Final = answer(
    "ReleasedItems", reports.ReleasedItems, batch=BATCH, released=t.NATURAL, cursor=t.CURSOR
)
