"""Redrives: the calls that send failed items again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fanin.domain.redrives import Redrive, Redriving, Redrivings


class Redrives(Protocol):
    """Sends the messages of failed items again. All calls are safe to repeat."""

    def redrive(self, batch_id: int, request: Redrive | None = None) -> Redriving:
        """Send the kept messages of failed items again, each failure once.

        Those of a batch that has ended get items of a new batch, whose ``retry_of`` names this one. Items
        that a live batch holds are sent under their own ids. A small redrive is finished when the call
        returns; a worker goes on with a larger one, and ``redrives`` shows how far it is. If a redrive of the
        same selection is running, the call returns that one, and goes on with it if its worker has died.

        Raises:
            InvalidRequest: the batch is live and does not hold its failed items, or the selection is invalid.
            ChannelRefused: fanin may not send to the queue that the request names.
            BatchNotFound, BatchGone: the batch does not exist or is gone.
            Throttled: the tables are overloaded; call again.
        """
        ...

    def redrives(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Redrivings:
        """List the redrives of a batch's failures, up to 1,000 a page. Only a None cursor marks the end.

        Raises:
            InvalidRequest: the cursor is not from this listing, or the limit is not from 1 to 1,000.
            BatchNotFound, BatchGone: the batch does not exist or is gone.
        """
        ...
