"""Shapes of batches: what opens one, what it is, how far it is, and who is called back at its end."""

from collections.abc import Mapping
from typing import Final

from fanin.domain import limits
from fanin.domain.batch import (
    MAX_MILESTONES,
    WHOLE,
    Batch,
    Cause,
    ChangeLimits,
    ChildFailures,
    CloseWhen,
    Kind,
    Mode,
    OnDeadline,
    OnFailure,
    OpenBatch,
    State,
    Trouble,
)
from fanin.domain.failures import MIN_SAMPLE, Keep, Tolerance
from fanin.domain.ids import (
    MAX_COUNT,
    MAX_DIGEST,
    MAX_ITEMS,
    MAX_KEY,
    MAX_KEYS,
    AddKeys,
    Group,
    ItemKey,
    KeyedItem,
    KeyedItems,
)
from fanin.domain.reports import (
    Attention,
    BatchCounts,
    Batches,
    Estimate,
    Expired,
    Progress,
    ReleasedItems,
    Troubled,
    Verdict,
)
from fanin.domain.targets import (
    CALLBACK_ID,
    MAX_CALLBACK_ID,
    MAX_TARGETS,
    MAX_TASK_TOKEN,
    MAX_URL,
    Target,
    TargetReport,
    TargetReports,
    TargetState,
    TargetType,
    When,
)
from fanin.domain.totals import MAX_TOTALS, NAME
from fanin.wire.json_types import (
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    INDIVISIBLE,
    ITEM_ID,
    METADATA,
    NATURAL,
    TEXT,
    TIME,
    TIME_IN_SECONDS,
    UUID,
    JsonType,
    many,
    number,
    one_of,
    or_null,
    string_map,
    text,
    whole,
)
from fanin.wire.shapes import Inline, answer, plain, request

TARGET: Final = request(
    "Target",
    Target,
    type=one_of(TargetType),
    when=one_of(When).with_keywords(
        description="complete: ended complete and no item failed; failed: every other end; before the end:"
        " failing, waiting (only held items are left), progress (each milestone)"
    ),
    task_token=or_null(text(MAX_TASK_TOKEN, least=1)).with_keywords(description="with type step_functions"),
    callback_id=or_null(text(MAX_CALLBACK_ID, least=1)).with_keywords(
        pattern=f"^{CALLBACK_ID}$", description="with type durable_callback"
    ),
    queue_url=or_null(text(limits.MAX_CHANNEL, least=1)).with_keywords(
        description="with type sqs: URL or ARN of a standard queue with the tag fanin:channel"
    ),
    url=or_null(text(MAX_URL, least=1)).with_keywords(description="with type webhook: an https URL"),
)
ON_END: Final = many(TARGET, MAX_TARGETS).with_keywords(**{INDIVISIBLE: True}).left_out_if_empty()
TARGET_REPORT: Final = answer(
    "TargetReport",
    TargetReport,
    number=NATURAL,
    type=one_of(TargetType),
    when=one_of(When),
    to=TEXT.with_keywords(description="where it points; tokens and the paths of URLs are masked"),
    state=one_of(TargetState),
    attempts=NATURAL,
    last_error=or_null(TEXT),
    delivered_at=or_null(TIME),
    failing_since=or_null(TIME),
    next_at=or_null(TIME),
)
TARGET_REPORTS: Final = answer("TargetReports", TargetReports, targets=many(TARGET_REPORT))


STATE: Final = one_of(State)
USER_KEY: Final = text(limits.MAX_USER_KEY, least=1)
"""A user key that batches are looked for by."""

TOTALS: Final[JsonType[Mapping[str, int]]] = JsonType(
    {"type": "object", "additionalProperties": {"type": "integer"}}, dict, dict
)
"""Sums of totals by their names."""
TOTAL_NAMES: Final = (
    many(JsonType[str]({"type": "string", "pattern": f"^{NAME}$"}), MAX_TOTALS)
    .with_keywords(**{INDIVISIBLE: True})
    .left_out_if_empty()
)
"""Names of the totals that a batch is opened with."""
_KEEP: Final = one_of(Keep).with_keywords(
    description="what is kept of failed items: their messages, or their reasons alone"
)
TOLERANCE: Final = request(
    "Tolerance",
    Tolerance,
    count=or_null(whole(0, MAX_ITEMS)),
    percent=or_null(number(0, 100)).with_keywords(description="of the items that are done"),
    min_sample=or_null(whole(1, MAX_ITEMS)).with_keywords(
        description=f"items that are done before the percent counts; {MIN_SAMPLE} if left out"
    ),
)

MILESTONES: Final = many(whole(1, WHOLE), MAX_MILESTONES).with_keywords(
    description="percents of its items at which Batch Progress is told", **{INDIVISIBLE: True}
)
OPEN_BATCH: Final = request(
    "OpenBatch",
    OpenBatch,
    user_key=text(limits.MAX_USER_KEY),
    mode=one_of(Mode),
    idle_ttl=or_null(whole(limits.MIN_IDLE_TTL, limits.MAX_LIFETIME)),
    lifetime=or_null(whole(limits.MIN_LIFETIME, limits.MAX_LIFETIME)),
    deadline=or_null(TIME),
    on_deadline=one_of(OnDeadline),
    limit=or_null(whole(1, limits.MAX_LIMIT)),
    parent_item=or_null(ITEM_ID),
    retry_of=or_null(BATCH_ID),
    stall_after=or_null(whole(0, limits.MAX_LIFETIME)),
    metadata=METADATA,
    keep=or_null(_KEEP),
    on_failure=one_of(OnFailure).left_out_if(OnFailure.DONE),
    child_failures=one_of(ChildFailures).left_out_if(ChildFailures.FAIL),
    tolerated_failures=TOLERANCE,
    on_end=ON_END,
    totals=TOTAL_NAMES,
    results=BOOLEAN.left_out_if(False),
    max_items=or_null(whole(1, MAX_ITEMS)),
    milestones=MILESTONES.left_out_if_empty(),
)
CHANGE_LIMITS: Final = request(
    "ChangeLimits",
    ChangeLimits,
    deadline=or_null(TIME),
    tolerated_failures=TOLERANCE,
    stall_after=or_null(whole(0, limits.MAX_LIFETIME)),
    milestones=or_null(MILESTONES),
)
BATCH: Final = answer(
    "Batch",
    Batch,
    without={"salt": b""},
    shown={"touched_at": "active_at", "held_more": "may_hold_more", "attention": "trouble"},
    batch_id=BATCH_ID,
    state=STATE,
    mode=one_of(Mode),
    kind=one_of(Kind),
    user_key=TEXT,
    items=NATURAL,
    acked=NATURAL.with_keywords(
        description="marks that the row of an estimated batch has counted; absent if there are none"
    ).left_out_if_empty(),
    failed=NATURAL,
    failed_more=BOOLEAN,
    held=NATURAL,
    held_more=BOOLEAN,
    partial=BOOLEAN,
    created_at=TIME,
    touched_at=TIME,
    closed_at=or_null(TIME),
    ended_at=or_null(TIME),
    expires_at=TIME_IN_SECONDS,
    open_idle_ttl=NATURAL,
    closed_idle_ttl=NATURAL,
    deadline=or_null(TIME),
    on_deadline=one_of(OnDeadline),
    limit=or_null(NATURAL),
    parent_item=or_null(ITEM_ID),
    retry_of=or_null(BATCH_ID),
    stall_after=NATURAL,
    metadata=string_map(),
    keep=_KEEP,
    on_failure=one_of(OnFailure),
    child_failures=one_of(ChildFailures),
    tolerated_failures=or_null(TOLERANCE),
    cause=or_null(one_of(Cause)).with_keywords(
        enum=[*(one.value for one in Cause), None],
        description="why it was cancelled although nobody asked for it",
    ),
    targets=NATURAL,
    totals=TOTALS,
    totals_exact=BOOLEAN.with_keywords(
        description="whether the totals are the sums of all items that are done, each counted once"
    ),
    totals_before=TOTALS.with_keywords(description="sums of the batches that it retries"),
    results=BOOLEAN.with_keywords(description="whether results of its items are kept"),
    opened_by=TEXT.with_keywords(
        description="who opened it: an AWS identity, a token's subject, a program's name; empty if unknown"
    ),
    attention=or_null(one_of(Trouble)).with_keywords(
        enum=[*(one.value for one in Trouble), None], description="why a person should look at it"
    ),
    draining_at=or_null(TIME),
    max_items=or_null(NATURAL),
    grown=NATURAL,
    keyed=NATURAL,
    milestones=MILESTONES,
    milestone=NATURAL.with_keywords(description="the last milestone that was told"),
    failing_at=or_null(TIME).with_keywords(description="when its first failure was told"),
    waiting_at=or_null(TIME).with_keywords(description="when it was told that only held items are left"),
)
"""A batch as callers see it: without its salt and its bookkeeping."""
BATCHES: Final = answer("BatchPage", Batches, batches=many(BATCH), cursor=CURSOR)
BATCH_COUNTS: Final = answer(
    "BatchCounts",
    BatchCounts,
    states=TOTALS.with_keywords(description="how many batches are in each state"),
    at_least=many(TEXT).with_keywords(description="states of which there are more than that"),
)
TROUBLED: Final = answer(
    "Troubled",
    Troubled,
    batch=Inline(BATCH),
    trouble=one_of(Trouble),
    reason=TEXT,
    action=TEXT.with_keywords(description="the command that helps: `fanin <action> <batch>`"),
)
ATTENTION: Final = answer(
    "Attention",
    Attention,
    batches=many(TROUBLED),
    counts=TOTALS.with_keywords(description="how many batches there are in all, by what is wrong"),
    cursor=CURSOR,
    at_least=many(TEXT).with_keywords(description="what is wrong with more batches than that"),
)
_DOLLARS: Final = number(0, 1e15)
COST: Final = answer(
    "Cost",
    Estimate,
    dollars=_DOLLARS.with_keywords(
        description="if the items were marked over HTTPS, any ten items a call, at list prices"
    ),
    at_least=_DOLLARS.with_keywords(description="if one range marked them"),
    at_most=_DOLLARS.with_keywords(description="if each was marked over HTTPS by itself"),
    region=TEXT.with_keywords(description="region whose list prices were taken"),
    since=TEXT.with_keywords(description="date of these prices"),
    estimate=BOOLEAN.with_keywords(description="always true: no row counts requests"),
)
PROGRESS: Final = answer(
    "Progress",
    Progress,
    batch=Inline(BATCH),
    done_min=NATURAL,
    done_max=NATURAL,
    cost=or_null(COST),
)
CLOSE_WHEN: Final = one_of(CloseWhen)
ADD_ITEMS: Final = plain(
    "AddItems",
    {"count": whole(1, MAX_COUNT)},
    {"item": ITEM_ID.with_keywords(description="the pending item of the batch that adds them")},
)
KEY_OF_ITEM: Final = text(MAX_KEY, least=1).with_keywords(description=f"1 to {MAX_KEY} bytes in UTF-8")
ITEM_KEY: Final = request(
    "ItemKey",
    ItemKey,
    key=KEY_OF_ITEM,
    payload=text(MAX_DIGEST),
)
ADD_KEYS: Final = request(
    "AddKeys",
    AddKeys,
    keys=many(ITEM_KEY, MAX_KEYS),
    item=or_null(ITEM_ID).with_keywords(description="the pending item of the batch that adds them"),
)
KEYED_ITEM: Final = answer(
    "KeyedItem", KeyedItem, key=TEXT, item=TEXT, added=BOOLEAN, done=BOOLEAN, differs=BOOLEAN, send=BOOLEAN
)
KEYED_ITEMS: Final = answer("KeyedItems", KeyedItems, items=many(KEYED_ITEM))
GROUP: Final = answer(
    "Group",
    Group,
    batch_id=BATCH_ID,
    id=UUID,
    upto=whole(1, MAX_COUNT),
    again=BOOLEAN,
    sent=BOOLEAN,
)
EXPIRED: Final = answer("Expired", Expired, batches=NATURAL, items=NATURAL, cursor=CURSOR)
VERDICT: Final = answer(
    "Verdict",
    Verdict,
    batch=BATCH,
    pending=NATURAL,
    disagreements=many(TEXT),
    repaired=BOOLEAN,
    cursor=CURSOR,
)
RELEASED: Final = answer("ReleasedItems", ReleasedItems, batch=BATCH, released=NATURAL, cursor=CURSOR)
