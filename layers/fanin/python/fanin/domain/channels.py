"""Channels: the queues that fanin may send to, and which queues are FIFO queues."""

from __future__ import annotations

from typing import Final

from fanin.errors import ChannelRefused

_FIFO: Final = ".fifo"


def is_fifo(queue: str) -> bool:
    """Whether a queue is a FIFO queue, by its URL or ARN, which SQS requires to end in ``.fifo``."""
    return queue.endswith(_FIFO)


def check_channel(channel: str) -> None:
    """Refuse a FIFO queue: it takes no message without a group, and fanin's messages have none.

    Raises:
        ChannelRefused: the queue is a FIFO queue.
    """
    if is_fifo(channel):
        raise ChannelRefused(
            f"{channel[:200]!r} is a FIFO queue, which cannot be a channel; use a standard queue"
        )
