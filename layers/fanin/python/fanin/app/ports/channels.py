"""What the use cases need of the queues they send to: those of others, and the queue of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol


class Outgoing(NamedTuple):
    """A message for a channel.

    Attributes:
        channel: queue URL.
        body: text.
        attributes: string attributes, at most ten.
    """

    channel: str
    body: str
    attributes: Mapping[str, str]


class Channels(Protocol):
    """The queues of others: those that registered, that are scattered to, that want replies."""

    def resolve(self, channel: str) -> str:
        """The URL of a queue, given by URL or ARN, if fanin may use it.

        Raises:
            ChannelRefused: there is no such queue, or it does not carry the tag ``fanin:channel``.
        """
        ...

    def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        """Send messages in parallel, batched by queue.

        Returns:
            For each message None, or why its queue will never take it.

        Raises:
            Throttled: some were not taken in all tries; send all again.
        """
        ...


class Jobs(Protocol):
    """The queue of the worker that sends a scatter's messages."""

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        """Put jobs on the queue; raises Throttled if some were not taken, and all may be sent again."""
        ...
