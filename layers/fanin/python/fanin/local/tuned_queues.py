"""Lets the emulator receive messages without going through the whole queue each time.

For every receive the emulator completes all messages of the queue, looks whether any is past its retention
period, and collects all that are visible before it takes the first ten. With 100,000 messages that takes a
tenth of a second and more. Here it stops at the tenth visible message, and looks for messages that are past
their retention period once a second. FIFO queues stay as they are.

``launcher.py`` loads this file by its path, in the emulator's own Python; so it imports nothing of fanin.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

PATCHED = ("_collect_msgs", "_expire_retained")
USED = ("_ensure_msg_fields",)
EXPIRY_SECONDS = 1.0
"""Between two looks for messages past their retention period, which is a minute at least."""
LOOKED_AT = "_looked_for_expired_at"


def tune(require: Callable[[Any, str], None]) -> None:
    """Patch the emulator.

    Args:
        require: ends the process if a module lacks an attribute.
    """
    sqs: Any = importlib.import_module("ministack.services.sqs")
    for attribute in (*PATCHED, *USED):
        require(sqs, attribute)
    sqs._collect_msgs = _first_visible(sqs._collect_msgs, sqs._ensure_msg_fields)
    sqs._expire_retained = _now_and_then(sqs._expire_retained)


def _first_visible(
    collect: Callable[..., list[Any]], complete: Callable[[Any], None]
) -> Callable[[Any, int, int], list[Any]]:
    """Replaces ``_collect_msgs``: hands it the messages that it takes, not the whole queue."""

    def collect_messages(queue: Any, most: int, visibility_timeout: int) -> list[Any]:
        if queue["is_fifo"]:
            return collect(queue, most, visibility_timeout)
        messages = list(islice(_visible(queue["messages"], complete), most))
        return collect({**queue, "messages": messages}, most, visibility_timeout)

    return collect_messages


def _visible(messages: list[Any], complete: Callable[[Any], None]) -> Iterator[Any]:
    now = time.time()
    for message in messages:
        if "visible_at" not in message:  # other services put messages into a queue without some fields
            complete(message)
        if message["visible_at"] <= now:
            yield message


def _now_and_then(expire: Callable[[Any], None]) -> Callable[[Any], None]:
    """Replaces ``_expire_retained``: looks once a second."""

    def expire_retained(queue: Any) -> None:
        now = time.time()
        if now - queue.get(LOOKED_AT, -EXPIRY_SECONDS) >= EXPIRY_SECONDS:
            queue[LOOKED_AT] = now
            expire(queue)

    return expire_retained
