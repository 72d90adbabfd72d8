"""What the use cases need of the queues of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Received(NamedTuple):
    """A message received from a queue, hidden from others for a while.

    Attributes:
        handle: of this delivery, to remove the message by.
        body: text.
        attributes: string attributes.
        sent_at: when it was sent, ms.
    """

    handle: str
    body: str
    attributes: Mapping[str, str]
    sent_at: int


class QueueState(NamedTuple):
    """What a queue says of itself.

    Attributes:
        retention: seconds after which it drops a message.
        in_flight: messages received and not removed, approximately.
    """

    retention: int
    in_flight: int


class Queues(Protocol):
    """The queues of buffers: made by the service, or others that carry the channel tag."""

    def create(self, name: str) -> str:
        """Make the queue of a buffer, and return its URL; one being there is no error.

        Raises:
            Throttled: it was deleted less than a minute ago.
        """
        ...

    def delete(self, queue: str) -> None:
        """Delete a queue; none being there is no error."""
        ...

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        """Receive messages, waiting for the first.

        Args:
            queue: URL.
            most: messages, at most 10.
            wait: seconds.
            visibility_timeout: seconds; None for the queue's own.

        Raises:
            ChannelRefused: the queue is gone, or cannot be received from.
        """
        ...

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        """Remove messages; what is gone already, or was received again by others, is left alone."""
        ...

    def state(self, queue: str) -> QueueState:
        """Ask a queue for its state; raises ChannelRefused like ``receive``."""
        ...
