"""The calls of scatter-gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fanin.domain.claim_checks import ClaimCheck, ClaimCheckRequest
    from fanin.domain.principals import Principal
    from fanin.domain.scatter import (
        FailedRecipients,
        Gathered,
        MissingRecipients,
        Reply,
        ReplyReceipt,
        Scatter,
        Scattered,
    )


class Scatters(Protocol):
    """Scatter-gather: one message to many recipients, and their replies.

    Calls raise the errors of ``Ledger``, and those named here.
    """

    def start(
        self, scatter: Scatter, *, key: str | None = None, caller: Principal | None = None
    ) -> Scattered:
        """Send a message to many.

        Args:
            scatter: what to send to whom.
            key: idempotency key: a repeat with it returns the same scatter, and finishes an interrupted
                start. Without a key, a repeat starts another scatter.
            caller: who asks, as for ``Ledger.open``.

        Raises:
            IdempotencyKeyReused: the key was used for another request.
            BatchGone: the scatter of the key is past its lifetime.
            NotRegistered: a recipient names a registration that does not exist.
            CorrelationIdAlive: a scatter with that correlation id has not ended.
            ChannelRefused: a recipient is not a queue that fanin may send to.
            RequestTooLarge: too many recipients, or too large a message.
        """
        ...

    def status(self, batch_id: int) -> Scattered:
        """Read the scatter with exact counts of replies, failures and missing recipients."""
        ...

    def replies(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Gathered:
        """The replies so far, in the order of the recipients; at most 100 a page, fewer if they are large."""
        ...

    def missing_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> MissingRecipients:
        """Recipients that have neither replied nor failed, in their order; at most 100 a page.

        To see every recipient at least once while replies come in, read the missing ones first, then the
        failed ones, then the replies. None are missing while the recipients of a large topic are still being
        listed.

        Raises:
            InvalidRequest: the cursor is not one that this call gave.
        """
        ...

    def failed_recipients(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> FailedRecipients:
        """Recipients that failed, in their order, each with the reason; at most 100 a page."""
        ...

    def reply(self, replies: Sequence[Reply]) -> list[ReplyReceipt]:
        """Take up to 100 replies. The first reply of each recipient counts; a repeat does no harm.

        Raises:
            InvalidRequest: a reply has both a payload and a claim, its claim was given for another item, or
                nothing was uploaded under it; nothing was stored.
            InvalidItemId: an item was not issued by this service.
            BatchNotFound: the batch of an item does not exist, or is not a scatter.
            RequestTooLarge: there are too many replies, or a payload is too large; upload it with a claim
                check.
        """
        ...

    def claim(self, request: ClaimCheckRequest) -> ClaimCheck:
        """Get a signed URL to upload a payload that is too large for a reply; it lives for 15 minutes.

        Raises:
            InvalidRequest: the size is not from 1 byte to 5 GiB, or the content type is not 1 to 256
                characters.
            InvalidItemId: the item was not issued by this service.
            BatchNotFound: the batch of the item does not exist, or is not a scatter.
        """
        ...
