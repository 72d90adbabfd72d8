"""Which items of a batch were done before a producer went on with it: nothing is sent for them again."""

from __future__ import annotations

from fanin.client.ledger import LedgerCalls
from fanin.domain import ids
from fanin.domain.batch import Batch, Mode
from fanin.domain.ids import Group


class DoneBefore:
    """Tells which items need no message any more; ask in ascending order of the items.

    It reads what is missing, a page at a time, as far as it is asked. An item that is done meanwhile may
    count as missing: its message is sent once more than needed, which does no harm.

    Args:
        ledger: the ledger's calls.
        row: the batch; items that were added after it was read are not done.
    """

    def __init__(self, ledger: LedgerCalls, row: Batch) -> None:
        self._upto = row.items
        self._known = row.items if row.mode is Mode.EXACT else 0  # an estimated batch knows only numbers
        self._missing = ledger.iter_missing(row.batch_id) if self._known else iter(())
        self._start = self._stop = 0

    def added(self, group: Group) -> bool:
        """Whether items were added before, so that the batch may have ended since."""
        return ids.parse_prefix(group.prefix).first < self._upto

    def __contains__(self, item: str) -> bool:
        _, ordinal = ids.parse_item(item)
        if ordinal >= self._known:
            return False
        while ordinal >= self._stop:
            found = next(self._missing, None)
            if found is None:
                self._start = self._stop = self._known
            else:
                self._start, self._stop = found.start, found.stop
        return ordinal < self._start
