"""Live views as server-sent events (HTML Standard, section 9.2)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Hashable
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from fanin.console.live.feeds import Feeds, Read, Trouble, Update, View
from fanin.errors import FaninError

TYPE: Final = "text/event-stream"
AGAIN_MS: Final = 5_000
"""After how long a browser asks again where an answer cannot stay open."""


def events(feeds: Feeds, key: Hashable, read: Read, *, streams: bool) -> Response:
    """Answer with the events of a view: ``view``, ``trouble`` and ``over``.

    Args:
        feeds: the readers.
        key: of the view.
        read: reads it.
        streams: whether the answer may stay open; else it has one event, and the browser asks again.
    """
    headers = {"X-Accel-Buffering": "no"}
    if not streams:
        update = _once(read)
        end = _event("over", {}) if isinstance(update, View) and update.over else ""
        return Response(f"retry: {AGAIN_MS}\n\n{_told(update)}{end}", media_type=TYPE, headers=headers)

    async def told() -> AsyncIterator[str]:
        yield f"retry: {AGAIN_MS}\n\n"
        over = False
        async for update in feeds.follow(key, read):
            over = isinstance(update, View) and update.over
            yield _told(update)
        if over:
            yield _event("over", {})

    return StreamingResponse(told(), media_type=TYPE, headers=headers)


def _once(read: Read) -> Update:
    try:
        return read()
    except FaninError as error:
        return Trouble(str(error), AGAIN_MS / 1000)


def _told(update: Update) -> str:
    match update:
        case View():
            return _event("view", dict(update.fragments))
        case Trouble():
            return _event("trouble", {"text": update.text, "seconds": update.seconds})
        case _:
            return ": still here\n\n"


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON has no line ends outside of its strings, and in them they are escaped.
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
