"""Why a batch is not finished: the calls of diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fanin.domain.diagnosis import Diagnosis, Retry, SentItems


class Diagnostics(Protocol):
    """Says why a batch is not finished, and takes the notes that help to say it.

    All calls are safe to repeat. Any call may raise ``InvalidRequest``, ``Throttled``, ``ServiceUnavailable``
    and ``AccessDenied``, and those that name a batch ``BatchNotFound`` and ``BatchGone``.
    """

    def why(self, batch_id: int) -> Diagnosis:
        """Say why a batch is not finished, from at most 100 reads of rows and queues.

        It writes nothing. What it may not look at is a finding, not an error.
        """
        ...

    def note_sent(self, batch_id: int, sent: SentItems) -> None:
        """Note that a queue has accepted the messages of some items; costs one write.

        Repeating it, also with a longer range that begins at the same item, is exact: nothing is counted.

        Raises:
            InvalidRequest: the range is empty, or ends past the batch's last item.
        """
        ...

    def note_retries(self, retries: Sequence[Retry]) -> None:
        """Note failed attempts whose messages come again, at most 1,000; of an item the last note stays.

        Items of batches that have ended are ignored.

        Raises:
            InvalidItemId: an id is malformed or was not issued by this service; nothing was written.
            RequestTooLarge: there are too many.
        """
        ...
