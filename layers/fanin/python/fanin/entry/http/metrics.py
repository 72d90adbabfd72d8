"""What is counted when a call has been answered: the metrics of the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from fanin import names
from fanin.entry.observe import count, count_receipts, gauge, logger
from fanin.errors import LimitReached

T = TypeVar("T")


def _listed(page: Any) -> None:
    count(names.METRIC_BUFFERS_UNREADABLE, len(page.unreadable))
    for name in page.unreadable:
        logger.error("buffer not listed: its record cannot be read", extra={"buffer": name})


def _taken(work: Any) -> None:
    for one in work:
        gauge(names.METRIC_BUFFER_WAIT, one.waited_ms)


_ANSWERED: Final[Mapping[str, Callable[[Any], None]]] = {
    "markItems": lambda marked: count_receipts(marked.receipts),
    "releaseItems": lambda released: count(names.METRIC_RELEASED, released.released),
    "openFrame": lambda _: count(names.METRIC_FRAMES_OPENED),
    "reply": lambda receipts: count(names.METRIC_REPLIES, sum(receipt.first for receipt in receipts)),
    "getBuffer": lambda level: gauge(names.METRIC_BUFFER_DEPTH, level.pending),
    "listBuffers": _listed,
    "takeWork": _taken,
}
"""Operation → what the value that it answers with adds to the metrics."""
_FULL: Final[Mapping[str, str]] = {"putWork": names.METRIC_BUFFER_REJECTS}
"""Operation → the metric of calls that it refuses because a limit is reached."""


def with_metrics(operation: str, act: Callable[[], T]) -> T:
    """Make a call, and count what comes of it."""
    try:
        value = act()
    except LimitReached:
        if metric := _FULL.get(operation):
            count(metric)
        raise
    if note := _ANSWERED.get(operation):
        note(value)
    return value
