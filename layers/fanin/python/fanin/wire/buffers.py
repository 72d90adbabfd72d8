"""Shapes of bounded buffers: what is asked of them and what they answer."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.domain.buffer import (
    Accepted,
    Buffer,
    BufferPage,
    DoneWork,
    FailedWork,
    Level,
    PutOutcome,
    Released,
    Work,
)
from fanin.wire.json_types import (
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    ITEM_ID,
    NATURAL,
    TEXT,
    JsonType,
    many,
    one_of,
    or_null,
    text,
    whole,
)
from fanin.wire.shapes import Inline, answer, plain, request, wrapped

DEFINE_BUFFER: Final = plain(
    "DefineBuffer",
    {"limit": whole(1, limits.MAX_LIMIT)},
    {
        "queue": or_null(text(limits.MAX_CHANNEL, least=1)).with_keywords(
            description="URL or ARN; without one the service makes a queue"
        )
    },
)
BUFFER: Final = answer(
    "Buffer",
    Buffer,
    name=TEXT,
    limit=whole(1, limits.MAX_LIMIT),
    queue=TEXT.with_keywords(description="URL"),
    owned=BOOLEAN.with_keywords(description="whether the service made the queue"),
    batch_id=BATCH_ID,
)
BUFFERS: Final = answer(
    "BufferPage", BufferPage, without={"unreadable": ()}, buffers=many(BUFFER), cursor=CURSOR
)
LEVEL: Final = answer(
    "BufferLevel",
    Level,
    buffer=Inline(BUFFER),
    count=JsonType[int](
        {"type": "integer", "description": "work that waits; below zero, consumers that wait for it"}
    ),
    pending=NATURAL,
    taken=NATURAL.with_keywords(description="approximately"),
    draining=BOOLEAN,
)
PUT_WORK: Final = wrapped(
    "PutWork", "payloads", many(text(limits.MAX_PAYLOAD, least=1), limits.MAX_WORK, least=1)
)
ACCEPTED: Final = answer("AcceptedWork", Accepted, outcome=one_of(PutOutcome), items=many(ITEM_ID))
TAKE_WORK: Final = plain(
    "TakeWork",
    {},
    {
        "most": whole(1, limits.MAX_WORK).with_keywords(default=1),
        "wait": whole(0, limits.MAX_WAIT).with_keywords(default=limits.MAX_WAIT, description="seconds"),
        "visibility_timeout": or_null(whole(1, limits.MAX_VISIBILITY_TIMEOUT)).with_keywords(
            description="seconds until the work comes again; null for the queue's own"
        ),
        "waiter": TEXT.with_keywords(
            pattern="^[0-9a-f]{16}$",
            description="name of a caller that asks again and again instead of waiting; with it, the answer"
            " comes at once",
        ),
        "waits": whole(0, limits.MAX_WAIT).with_keywords(
            default=0, description="seconds for which the waiter counts as a consumer that waits"
        ),
    },
)
WORK: Final = answer("Work", Work, payload=TEXT, receipt=TEXT, waited_ms=NATURAL)
TAKEN: Final = wrapped("TakenWork", "work", many(WORK))
FAILED_WORK: Final = request("FailedWork", FailedWork, receipt=TEXT, reason=text(limits.MAX_REASON))
DONE_WORK: Final = request(
    "DoneWork",
    DoneWork,
    tokens=many(TEXT, limits.MAX_RECEIPTS).called("receipts"),
    failures=many(FAILED_WORK, limits.MAX_RECEIPTS).with_keywords(
        description="work that is given up; it does not come again"
    ),
)
RELEASED: Final = answer("ReleasedSlots", Released, done=NATURAL, late=NATURAL)
