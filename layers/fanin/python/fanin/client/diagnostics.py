"""Diagnostics for people, and the notes that producers and consumers make, which never get in their way."""

import logging
from collections.abc import Sequence

from fanin.app.api import Fanin
from fanin.app.bisect import bisect
from fanin.domain.diagnosis import Diagnosis, Retry, SentItems
from fanin.domain.limits import MAX_NOTES
from fanin.domain.reports import Attention

logger = logging.getLogger("fanin")


class DiagnosticCalls:
    """The calls on diagnostics that every ``Tracker`` has."""

    services: Fanin

    def why(self, batch_id: int) -> Diagnosis:
        """Say why a batch is not finished: findings, most likely first, each with what to do.

        It takes at most 100 reads of rows and queues, and writes nothing. Counts of SQS are approximate, so a
        finding that stands on them says "probably".

        Args:
            batch_id: the batch.

        Raises:
            BatchNotFound, BatchGone: the batch does not exist, or is gone.
        """
        return self.services.diagnostics.why(batch_id)

    def attention(self, *, cursor: str | None = None, limit: int = 100) -> Attention:
        """List the batches that a person should look at: live ones first, the most urgent before others.

        Each has what is wrong, in words, and the command that helps. A failure that was redriven is not
        listed. It reads what is wrong, however many batches there are.

        Args:
            cursor: of the page before; a page whose cursor is None is the last.
            limit: how many batches a page has at most.
        """
        return self.services.diagnostics.attention(cursor=cursor, limit=limit)

    def note_sent(self, batch_id: int, sent: SentItems) -> None:
        """Note that a queue has accepted the messages of some items, so that ``why`` knows where to look.

        ``batch.send`` does so by itself. If you send messages yourself, call this once for each block.
        A note that cannot be written is logged, and nothing is raised: the messages are sent.
        """
        try:
            self.services.diagnostics.note_sent(batch_id, sent)
        except Exception as error:  # noqa: BLE001  whatever it is, the messages are sent
            logger.warning("batch %s: it could not be noted what was sent: %s", batch_id, error)

    def note_retries(self, retries: Sequence[Retry]) -> None:
        """Note failed attempts whose messages come again, so that ``why`` can say what their error is.

        Consumers of the library do so by themselves. What cannot be noted is logged, and nothing is raised:
        an item that is refused, such as one of a batch that is gone, keeps no other from being noted.
        """
        for start in range(0, len(retries), MAX_NOTES):
            try:
                failed = bisect(retries[start : start + MAX_NOTES], self.services.diagnostics.note_retries)
            except Exception as error:  # noqa: BLE001  whatever it is, the work goes on
                logger.warning("%d failed attempts could not be noted: %s", len(retries) - start, error)
                return
            for one in failed:
                left = len(one.items) if one.refused else len(retries) - start
                logger.warning("%d failed attempts could not be noted: %s", left, one.error)
            if not all(one.refused for one in failed):
                return
