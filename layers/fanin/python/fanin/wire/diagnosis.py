"""Shapes of a diagnosis: findings, what is known of missing items, and the notes behind it."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.domain.diagnosis import (
    Code,
    Diagnosis,
    Finding,
    Known,
    MissingKnown,
    Retry,
    SentItems,
    Severity,
)
from fanin.domain.ids import MAX_ITEMS
from fanin.wire.batches import BATCH
from fanin.wire.items import MISSING_RANGE
from fanin.wire.json_types import BOOLEAN, ITEM_ID, NATURAL, OBJECT, TEXT, many, one_of, text, whole
from fanin.wire.shapes import Inline, answer, request, wrapped

_QUEUE: Final = text(limits.MAX_CHANNEL, least=1).with_keywords(description="URL of the queue")

FINDING: Final = answer(
    "Finding",
    Finding,
    code=one_of(Code),
    severity=one_of(Severity),
    title=TEXT,
    detail=TEXT,
    advice=TEXT,
    evidence=OBJECT,
)
MISSING_KNOWN: Final = answer(
    "MissingKnown", MissingKnown, range=Inline(MISSING_RANGE), known=one_of(Known), detail=TEXT
)
DIAGNOSIS: Final = answer(
    "Diagnosis",
    Diagnosis,
    batch=Inline(BATCH),
    done_min=NATURAL,
    done_max=NATURAL,
    findings=many(FINDING),
    missing=many(MISSING_KNOWN),
    missing_more=BOOLEAN,
)
SENT: Final = request(
    "SentItems",
    SentItems,
    queue=_QUEUE,
    start=whole(0, MAX_ITEMS).called("from"),
    stop=whole(1, MAX_ITEMS).called("to"),
)
RETRY: Final = request(
    "Retry",
    Retry,
    item=ITEM_ID,
    attempt=whole(1, limits.MAX_ATTEMPTS),
    error=text(limits.MAX_REASON),
    queue=text(limits.MAX_CHANNEL),
)
RETRIES: Final = wrapped("NoteRetries", "retries", many(RETRY, limits.MAX_NOTES))

SHAPES: Final = (FINDING, MISSING_KNOWN, DIAGNOSIS, SENT, RETRY, RETRIES)
