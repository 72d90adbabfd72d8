"""Scatter-gather's face: the calls that the HTTP API, the library and the functions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fanin.domain.scatter import (
    ClaimCheck,
    ClaimCheckRequest,
    Gathered,
    Reply,
    ReplyReceipt,
    Scatter,
    Scattered,
)


class Scattering(Protocol):
    """Everything one can ask of fanin about scatters, over HTTPS or straight on the tables.

    Errors are those of ``fanin.app.ledger.Ledger``, and what is named here.
    """

    def start(self, scatter: Scatter, *, key: str | None = None) -> Scattered:
        """Send a message to many.

        Args:
            scatter: what to send to whom.
            key: idempotency key: a repeat with it finds the same scatter, and finishes its start if need be.
                Without one, a repeat starts another.

        Raises:
            IdempotencyKeyReused: the key was used for another request.
            BatchGone: the scatter of the key is past its lifetime.
            NotRegistered: a recipient is named by a registration that is not there.
            CorrelationIdAlive: a scatter of that correlation id has not ended.
            ChannelRefused: a recipient is no queue that fanin may send to.
            RequestTooLarge: too many recipients, or too large a message.
        """
        ...

    def status(self, batch_id: int) -> Scattered:
        """How far it is, counted exactly."""
        ...

    def replies(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Gathered:
        """The replies so far, in the order of the recipients; at most 100 a page, fewer if they are large."""
        ...

    def reply(self, replies: Sequence[Reply]) -> list[ReplyReceipt]:
        """Take up to 100 replies. Of each recipient the first counts; a repeat does no harm.

        Raises:
            InvalidItemId: an item was not issued by this service.
            RequestTooLarge: a payload is too large; claim it.
        """
        ...

    def claim(self, request: ClaimCheckRequest) -> ClaimCheck:
        """Where to upload a payload that is too large for a reply."""
        ...
