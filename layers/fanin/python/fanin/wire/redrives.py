"""Shapes of redrives: what asks for one, and what became of the failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fanin.domain import limits
from fanin.domain.redrives import Redrive, RedriveState, Redriving, Redrivings
from fanin.wire.json_types import (
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    NATURAL,
    TEXT,
    TIME,
    JsonType,
    many,
    one_of,
    or_null,
    text,
)
from fanin.wire.selections import ERRORS, RANGES
from fanin.wire.shapes import answer, request

_QUEUE: Final = or_null(text(limits.MAX_CHANNEL, least=1))

REDRIVE: Final = request(
    "Redrive",
    Redrive,
    errors=ERRORS.left_out_if_empty(),
    ranges=RANGES.left_out_if_empty(),
    queue_url=_QUEUE.with_keywords(
        description="URL or ARN of the queue to send to; without it, each message goes to its own queue"
    ).left_out_if_empty(),
    dry_run=BOOLEAN.with_keywords(description="only count").left_out_if_empty(),
)
_COUNTS: Final[JsonType[Mapping[str, int]]] = JsonType(
    {"type": "object", "additionalProperties": NATURAL.schema}, dict
)
REDRIVING: Final = answer(
    "Redriving",
    Redriving,
    name=TEXT,
    retry_of=BATCH_ID,
    batch_id=or_null(BATCH_ID).with_keywords(description="the batch that has the items now"),
    state=one_of(RedriveState),
    items=NATURAL.with_keywords(description="failures that were sent again"),
    already=NATURAL.with_keywords(description="failures that another redrive has sent"),
    not_kept=NATURAL.with_keywords(description="failures whose message was not kept"),
    not_kept_items=many(NATURAL).with_keywords(description="ordinals of the first of these"),
    refused=_COUNTS.with_keywords(description="why queues were not sent to, and for how many failures"),
    errors=ERRORS,
    ranges=RANGES,
    queue_url=_QUEUE,
    started_at=or_null(TIME),
)
"""A redrive and its counts so far."""
REDRIVINGS: Final = answer("Redrivings", Redrivings, redrives=many(REDRIVING), cursor=CURSOR)

SHAPES: Final = (REDRIVE, REDRIVING, REDRIVINGS)
