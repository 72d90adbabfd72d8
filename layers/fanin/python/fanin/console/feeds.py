"""Live views: a page asks again for what it shows, later and later while nothing changes."""

import json
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from starlette.responses import Response

from fanin.errors import FaninError

LATEST: Final = 30.0
"""Seconds until a page asks again if nothing has changed for long."""
LATEST_AFTER_ERRORS: Final = 60.0
SLOWER: Final = 1.5
TYPE: Final = "text/event-stream"
ID: Final = "Last-Event-ID"
"""Header in which a browser that asks again repeats the id of the last event (HTML Standard, 9.2.4)."""
_MOST_SAME: Final = 99
_MEMORY: Final = re.compile(r"([0-9a-f]{16})\.([0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class View:
    """What is live of a page.

    Attributes:
        fragments: element id → its inner HTML.
        facts: what the view shows, without what passes with time alone. While it stays equal, the page asks
            less and less often.
        over: whether it will never change again.
    """

    fragments: Mapping[str, str]
    facts: Hashable
    over: bool = False


def events(read: Callable[[], View], *, last: str, soonest: float) -> Response:
    """Answer with a view as an event, ``view`` or ``trouble``, and ``over`` if it was the last.

    Nothing here remembers what a browser has seen. So the id of the event says it: a digest of the facts, and
    how often they were the same.

    Args:
        read: reads the view; blocking.
        last: id of the last event that the browser has; empty if it has none.
        soonest: seconds until it asks again while something changes.
    """
    try:
        view = read()
    except FaninError as error:  # a browser gives up after an answer that is not 200
        seen, same = _seen("trouble", last)
        again = min(LATEST_AFTER_ERRORS, max(error.retry_after or 0, soonest * SLOWER**same))
        told = _event("trouble", {"text": str(error), "seconds": again})
    else:
        seen, same = _seen(view.facts, last)
        again = min(LATEST, soonest * SLOWER**same)
        told = _event("view", dict(view.fragments)) + (_event("over", {}) if view.over else "")
    return Response(f"retry: {again * 1000:.0f}\nid: {seen}.{same}\n\n{told}", media_type=TYPE)


def _seen(facts: Hashable, last: str) -> tuple[str, int]:
    """A digest of the facts, and how often in a row a browser has had them before."""
    digest = sha256(repr(facts).encode(errors="surrogatepass")).hexdigest()[:16]
    before = _MEMORY.fullmatch(last)
    return digest, min(int(before[2]) + 1, _MOST_SAME) if before and before[1] == digest else 0


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON has no line ends outside of its strings, and in them they are escaped.
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
