"""Lists the missing and the failed recipients of a scatter by name, in pages.

The bits say which recipients those are; the records say what they are called.
"""

from __future__ import annotations

from typing import Final

from fanin.app.ledger.reading import ordinal_of
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.records import CHUNK, read_names
from fanin.domain import limits
from fanin.domain.batch import Batch, Kind
from fanin.domain.scatter import FailedRecipient, FailedRecipients, MissingRecipient, MissingRecipients
from fanin.errors import BatchNotFound

_AT_ONCE: Final = 64 * CHUNK
"""Recipients whose bits are read at once: 100 words, and up to 5 above them."""
_WINDOWS: Final = 3
"""How often one call reads so many: with the names of a page, that is less than ``limits.MAX_ROWS``."""


class Recipients:
    """Lists the missing and the failed recipients of scatters.

    Args:
        ledger: knows who replied and who failed; its ports are used.
    """

    def __init__(self, ledger: LedgerService) -> None:
        self._ledger = ledger
        self._records = ledger.ports.records

    def missing(self, batch_id: int, *, cursor: str | None, limit: int) -> MissingRecipients:
        """See ``Scatters.missing_recipients``."""
        limits.whole("limit", limit, 1, limits.MAX_REPLIES)
        batch = self._scatter(batch_id)
        start = ordinal_of(cursor)
        found: list[int] = []
        for _ in range(_WINDOWS):
            if start >= batch.items or len(found) > limit:
                break
            found += sorted(self._ledger.pending(batch_id, start, start + _AT_ONCE))
            start += _AT_ONCE
        page, more = found[:limit], found[limit:]
        names = read_names(self._records, batch_id, page)
        recipients = tuple(MissingRecipient(ordinal, names[ordinal]) for ordinal in page)
        after = more[0] if more else start
        return MissingRecipients(recipients, str(after) if after < batch.items else None)

    def failed(self, batch_id: int, *, cursor: str | None, limit: int) -> FailedRecipients:
        """See ``Scatters.failed_recipients``."""
        limits.whole("limit", limit, 1, limits.MAX_REPLIES)
        self._scatter(batch_id)
        page = self._ledger.failures(batch_id, cursor=cursor, limit=limit)
        names = read_names(self._records, batch_id, [one.ordinal for one in page.failures])
        recipients = tuple(
            FailedRecipient(one.ordinal, names[one.ordinal], one.reason) for one in page.failures
        )
        return FailedRecipients(recipients, page.cursor)

    def _scatter(self, batch_id: int) -> Batch:
        """Read a batch, which must be a scatter, as it is now."""
        row = self._ledger.refresh({batch_id})[batch_id]
        if row.kind is not Kind.SCATTER:
            raise BatchNotFound(f"there is no scatter {batch_id}; check the id")
        return row
