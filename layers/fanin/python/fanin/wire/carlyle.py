"""Shapes of the original Carlyle's API: its names, and as lenient as it was about fields it did not know."""

from __future__ import annotations

from typing import Any, Final

from fanin.domain import limits
from fanin.domain.ids import MAX_BATCH_ID, MAX_COUNT
from fanin.domain.marks import MAX_HEAVY
from fanin.wire.json_types import (
    BATCH_ID,
    BOOLEAN,
    ITEM_ID,
    NATURAL,
    TEXT,
    UUID,
    JsonType,
    many,
    or_null,
    text,
    whole,
)
from fanin.wire.shapes import plain

_ID: Final = whole(0, MAX_BATCH_ID).with_keywords(type=["integer", "string"], pattern="^[0-9]{1,16}$")
_KEY: Final[dict[str, JsonType[Any]]] = {"userKey": or_null(TEXT)}
_STANDING: Final[dict[str, JsonType[Any]]] = {"isComplete": BOOLEAN, "isClosed": BOOLEAN, **_KEY}

CREATE: Final = plain("CarlyleCreate", {}, {"userKey": or_null(text(limits.MAX_USER_KEY))}, lenient=True)
ITEMS: Final = plain("CarlyleItems", {"batchId": _ID, "items": whole(1, MAX_COUNT)}, lenient=True)
ACKS: Final = plain("CarlyleAcks", {"batchItemIds": many(ITEM_ID, limits.MAX_MARKS)}, lenient=True)
DECREMENT: Final = plain("CarlyleDecrement", {"batchId": UUID}, {"by": whole(1, MAX_COUNT)}, lenient=True)
DECREMENTS: Final = plain("CarlyleDecrements", {"acks": many(DECREMENT, MAX_HEAVY)}, lenient=True)
CREATED: Final = plain("CarlyleCreated", {"batchId": BATCH_ID})
ESTIMATED_CREATED: Final = plain("CarlyleEstimatedCreated", {"batchId": UUID})
BATCH: Final = plain("CarlyleBatch", {"batchId": BATCH_ID, **_STANDING})
ESTIMATED_BATCH: Final = plain("CarlyleEstimatedBatch", _STANDING)
CLOSED: Final = plain("CarlyleClosed", {"isComplete": BOOLEAN})
GROUP: Final = plain("CarlyleGroup", {"id": UUID, "upto": whole(1, MAX_COUNT)})
GROUPS: Final = plain("CarlyleGroups", {"batchItemGroupIds": many(GROUP)})
COMPLETED: Final = plain("CarlyleCompleted", {"batchId": BATCH_ID, **_KEY})
COMPLETIONS: Final = plain("CarlyleCompletions", {"batchCompletions": many(COMPLETED)})
COMPLETION: Final = plain("CarlyleCompletion", {"batchId": UUID, **_KEY, "isComplete": BOOLEAN})
RESULTS: Final = plain("CarlyleResults", {"results": many(COMPLETION)})
REMOVED: Final = plain("CarlyleRemoved", {"batchesRemoved": NATURAL, "itemsRemoved": NATURAL})
