"""Shapes of targets: who is called back at the end of a batch, and how far that is."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
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
from fanin.wire.json_types import INDIVISIBLE, NATURAL, TEXT, TIME, many, one_of, or_null, text
from fanin.wire.shapes import answer, request

TARGET: Final = request(
    "Target",
    Target,
    type=one_of(TargetType),
    when=one_of(When).with_keywords(
        description="complete: ended complete and no item failed; failed: every other end"
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
)
TARGET_REPORTS: Final = answer("TargetReports", TargetReports, targets=many(TARGET_REPORT))
SHAPES: Final = (TARGET, TARGET_REPORT, TARGET_REPORTS)
