"""Queues that the use cases send to: those of users, and the queue of jobs."""

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
    """Users' queues: of registered instances, of recipients, of reply channels."""

    def resolve(self, channel: str) -> str:
        """The URL of a queue that is given by URL or ARN, if fanin may use it.

        Raises:
            ChannelRefused: the queue does not exist, or does not carry the tag ``fanin:channel``.
        """
        ...

    def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        """Send messages in parallel, batched by queue.

        Returns:
            For each message None, or the reason why its queue will never take it.

        Raises:
            Throttled: a queue kept refusing some messages for now; send all of them again.
        """
        ...


class Jobs(Protocol):
    """The queue of the worker that sends a scatter's messages."""

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        """Put jobs on the queue.

        Raises:
            Throttled: the queue did not take some of them; send all of them again.
        """
        ...
