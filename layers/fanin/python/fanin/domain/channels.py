"""Channels: the queues that fanin may send to."""

from __future__ import annotations

from typing import Final

from fanin.errors import ChannelRefused

FIFO: Final = ".fifo"
"""What the name of every FIFO queue ends with."""


def check_channel(channel: str) -> None:
    """Refuse a FIFO queue: it takes no message without a group, and fanin's messages have none.

    Raises:
        ChannelRefused: it is one.
    """
    if channel.endswith(FIFO):
        raise ChannelRefused(
            f"{channel[:200]!r} is a FIFO queue, which cannot be a channel; use a standard queue"
        )
