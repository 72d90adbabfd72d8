"""Live views as server-sent events (HTML Standard, section 9.2)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Hashable, Mapping
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from fanin.console.live.feeds import LATEST, LATEST_AFTER_ERRORS, SLOWER, FeedError, Feeds, Read, Update, View
from fanin.errors import FaninError

TYPE: Final = "text/event-stream"
AGAIN_MS: Final = 5_000
"""After how long a browser asks again where an answer cannot stay open, or where one broke."""
ID: Final = "Last-Event-ID"
"""Header in which a browser that asks again repeats the id of the last event (HTML Standard, 9.2.4)."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_MOST_SAME: Final = 99
_MEMORY: Final = re.compile(r"([0-9a-f]{16})\.([0-9]{1,3})")


def events(
    feeds: Feeds, key: Hashable, read: Read, *, streams: bool, headers: Mapping[str, str] = _NONE
) -> Response:
    """Answer with the events of a view: ``view``, ``trouble`` and ``over``.

    Args:
        feeds: the readers.
        key: of the view.
        read: reads it.
        streams: whether the answer may stay open; else it has one event, and the browser asks again.
        headers: of the request; they name the last event that the browser has.
    """
    more = {"X-Accel-Buffering": "no"}
    if not streams:
        return Response(_one_answer(read, headers.get(ID, "")), media_type=TYPE, headers=more)

    async def told() -> AsyncIterator[str]:
        yield f"retry: {AGAIN_MS}\n\n"
        over = False
        try:
            async for update in feeds.follow(key, read):
                over = isinstance(update, View) and update.over
                yield _told(update)
        except FaninError as refusal:  # the answer has begun; a browser asks again by itself
            yield _told(FeedError(str(refusal), AGAIN_MS / 1000))
        if over:
            yield _event("over", {})

    return StreamingResponse(told(), media_type=TYPE, headers=more)


def _one_answer(read: Read, last: str) -> str:
    """One event, and when to ask again: later and later while nothing changes, as the readers do.

    Nothing here remembers what a browser has seen. So the id of the event says it: a digest of the facts, and
    how often they were the same.
    """
    update: View | FeedError
    try:
        update = read()
    except FaninError as error:
        update = FeedError(str(error), 0)
    facts = update.facts if isinstance(update, View) else "trouble"
    digest = sha256(repr(facts).encode(errors="surrogatepass")).hexdigest()[:16]
    before = _MEMORY.fullmatch(last)
    same = min(int(before[2]) + 1, _MOST_SAME) if before and before[1] == digest else 0
    again = min(
        AGAIN_MS * SLOWER**same, 1000 * (LATEST_AFTER_ERRORS if isinstance(update, FeedError) else LATEST)
    )
    if isinstance(update, FeedError):
        update = replace(update, seconds=again / 1000)
    end = _event("over", {}) if isinstance(update, View) and update.over else ""
    return f"retry: {again:.0f}\nid: {digest}.{same}\n\n{_told(update)}{end}"


def _told(update: Update) -> str:
    match update:
        case View():
            return _event("view", dict(update.fragments))
        case FeedError():
            return _event("trouble", {"text": update.text, "seconds": update.seconds})
        case _:
            return ": still here\n\n"


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON has no line ends outside of its strings, and in them they are escaped.
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
