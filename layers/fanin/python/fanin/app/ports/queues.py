"""The queues of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Received(NamedTuple):
    """A message received from a queue; until its visibility timeout, other consumers do not get it.

    Attributes:
        handle: receipt handle of this delivery; ``remove`` takes it.
        body: text.
        attributes: string attributes.
        sent_at: when it was sent, ms.
    """

    handle: str
    body: str
    attributes: Mapping[str, str]
    sent_at: int


class QueueState(NamedTuple):
    """Settings and figures of a queue.

    Attributes:
        retention: seconds until the queue drops a message.
        in_flight: messages received and not removed, approximately.
    """

    retention: int
    in_flight: int


class Queues(Protocol):
    """The queues of buffers: created by the service, or the user's own with the channel tag."""

    def create(self, name: str, born: int) -> str:
        """Create the queue of a buffer, unless it exists, and return its URL.

        Args:
            name: of the buffer.
            born: id of the buffer's first batch. It makes the queue's name unique, so that a slow call that
                deletes a buffer's queue never deletes that of a later buffer of the same name.
        """
        ...

    def delete(self, queue: str) -> None:
        """Delete a queue, if it exists."""
        ...

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        """Receive messages, waiting until the first arrives.

        Args:
            queue: URL.
            most: messages, at most 10.
            wait: seconds.
            visibility_timeout: seconds until others may get the messages; None for the queue's own.

        Raises:
            ChannelRefused: the queue is gone, or cannot be received from.
        """
        ...

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        """Remove messages; those already gone, or received again by another consumer, are left alone."""
        ...

    def state(self, queue: str) -> QueueState:
        """Read the state of a queue; raises ChannelRefused like ``receive``."""
        ...
