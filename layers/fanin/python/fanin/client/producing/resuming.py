"""Producers that stop and go on: waits are cut short, and nothing is sent again for items that are done."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from fanin.client.ledger import LedgerCalls
from fanin.domain import ids
from fanin.domain.batch import Batch, Mode
from fanin.domain.ids import Group

T = TypeVar("T")

_GLANCE: Final = 0.5
"""Seconds after which a wait looks whether it is to stop."""


class Stop:
    """Asks a running ``TrackedBatch.send`` to stop, and says how far it came.

    ``send`` finishes the requests that are under way. Then every message before ``position`` is settled: the
    queue has it, or has refused it, or its item was done before. None after it was sent.

    Args:
        skip: messages that an earlier call has settled; they get the same items, and are not sent.

    Attributes:
        asked: set it, from any thread or a signal handler, to stop.
        position: how many messages from the first on are settled, once ``send`` has returned.
    """

    def __init__(self, skip: int = 0) -> None:
        self.asked = False
        self.position = 0
        self._skip = skip

    def until(self, messages: Iterable[tuple[T, bool]]) -> Iterator[T]:
        """The messages that are to be sent, until the stop.

        Args:
            messages: each with whether it is settled, and needs no sending.
        """
        for message, settled in messages:
            if self.asked:
                return
            self.position += 1
            if not settled:
                yield message

    def wait(self, seconds: float, sleep: Callable[[float], None]) -> None:
        """Wait, but not much longer than until the stop.

        Args:
            seconds: how long.
            sleep: waits so many seconds. A signal handler does not cut it short: Python sleeps on (PEP 475).
        """
        while seconds > 0 and not self.asked:
            sleep(min(seconds, _GLANCE))
            seconds -= _GLANCE

    def skipped(self, number: int) -> bool:
        """Whether an earlier call has settled the message with this number, counted from 0."""
        return number < self._skip


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
