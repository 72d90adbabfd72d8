"""The calls that mark items, for people: streams of any length, as many requests as they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Final, cast

from fanin.client.conversions import several
from fanin.client.merging import REPEATS, mark_all, repeat_rest
from fanin.client.paging import chunks
from fanin.client.reading import ReadingCalls
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt, Result
from fanin.domain.failures import KeptMessage, checked_message
from fanin.domain.ids import Group
from fanin.domain.limits import MAX_COUNTS, MAX_FAILURES, MAX_IDS, MAX_RANGES, MAX_REASON, shown
from fanin.domain.totals import check_values
from fanin.errors import InvalidRequest
from fanin.wire.compact_json import compact
from fanin.wire.messages import pack

ITEMS_BYTES: Final = 650_000
"""Bytes of the items of one request, with what they bring to totals; ranges and counts have the rest."""
FAILURES_BYTES: Final = 900_000
"""Bytes of the failures of one request; one with a larger message has a request of its own."""


class MarkingCalls(ReadingCalls):
    """The calls that mark items done or failed, which every ``Tracker`` has.

    Those of exact batches may be repeated at will; what estimated batches count may not.
    """

    def ack(
        self,
        items: str | Result | Group | Iterable[str | Result] = (),
        *,
        ranges: Iterable[ItemRange] = (),
        counts: Iterable[Count] = (),
        totals: Mapping[str, int] | None = None,
    ) -> list[Receipt]:
        """Mark items done: any number, of any batches.

        More than one request can carry is sent in several, one after the other. Ids are checked before
        anything of their request is marked; so when a later request is refused, the earlier ones are marked.

        Args:
            items: an item id, several, or a whole group, which is sent as one range. An item with values
                for the totals of its batch is a ``Result``.
            ranges: ranges of items.
            counts: numbers of items without ids, for estimated batches.
            totals: the values of a single item id for the totals of its batch: whole numbers within ±2⁵³ by
                name. They count once, with the first acknowledgement of the item.

        Returns:
            One receipt for each batch.

        Raises:
            InvalidItemId: an id is malformed, forged, or beyond its batch.
            InvalidRequest: a value is not a whole number, or the batch of its item has no such total.
        """
        if totals is not None:
            if not isinstance(items, str):
                raise InvalidRequest(
                    "totals go with a single item id; give several items as Result(item, totals)"
                )
            items = Result(items, check_values(totals))
        if isinstance(items, Group):
            ranges, items = [ItemRange(items.prefix), *ranges], ()
        if not isinstance(items, Iterable | Result):
            raise InvalidRequest(f"items must be an item id, several, or a group, not {shown(items)}")
        named = [items] if isinstance(items, str | Result) else items
        ranges = several("ranges", ranges, ItemRange, "[ItemRange(group.prefix, 0, 10)]")
        counts = several("counts", counts, Count, "[Count(batch_id, 10)]")
        requests = zip_longest(
            chunks(named, max_items=MAX_IDS, size_of=item_bytes, max_bytes=ITEMS_BYTES),
            chunks(ranges, max_items=MAX_RANGES),
            chunks(counts, max_items=MAX_COUNTS),
            fillvalue=(),
        )
        return mark_all(self._mark, (_acks(*request) for request in requests))

    def _mark(self, acks: Acks) -> Sequence[Receipt]:
        """Make one request, and repeat what it leaves."""

        def call(acks: Acks) -> Sequence[Receipt]:
            if acks.failures:
                return self.ledger.fail(acks.failures)
            return self.ledger.ack(acks.items, ranges=acks.ranges, counts=acks.counts, results=acks.results)

        return self.ended.learn(repeat_rest(call, acks, replace(REPEATS, sleep=self.clock.sleep)))

    def fail(
        self,
        items: str | Failure | Iterable[str | Failure],
        reason: str = "",
        *,
        message: KeptMessage | str | None = None,
        totals: Mapping[str, int] | None = None,
    ) -> list[Receipt]:
        """Mark items done as failed: any number, of any batches.

        The message of a failed item is kept with the batch, so that it can be read and sent again. In a
        batch that was opened with ``on_failure="hold"`` the items stay pending: they are held.

        Args:
            items: item ids; or ``Failure``, each with a reason and a message of its own.
            reason: for the item ids. The first 1,024 characters of a reason are kept.
            message: for the item ids: the message, or its text.
            totals: the values of a single item id, which are added all the same; see ``ack``.

        Returns:
            One receipt for each batch.

        Raises:
            InvalidItemId: an id is malformed, forged, or beyond its batch.
            InvalidRequest: a value is not a whole number, or the batch of its item has no such total.
            RequestTooLarge: a message has more than 4 MiB as JSON.
        """
        named = [items] if isinstance(items, str | Failure) else items
        example = "[item, Failure(other_item, reason)]"
        if totals is not None and not isinstance(items, str):
            raise InvalidRequest(
                "totals go with a single item id; give several items as Failure(item, reason, totals=…)"
            )
        brought = check_values(totals or {})
        kept_message = KeptMessage(message) if isinstance(message, str) else message
        failures = (
            Failure(item, reason, kept_message, totals=brought) if isinstance(item, str) else item
            for item in several("items", named, (str, Failure), example)
        )
        kept = (replace(failure, reason=_kept(failure.reason)) for failure in failures)
        requests = chunks(kept, max_items=MAX_FAILURES, size_of=failure_bytes, max_bytes=FAILURES_BYTES)
        return mark_all(self._mark, (Acks(failures=page) for page in requests))


def _acks(items: Sequence[str | Result], ranges: Sequence[ItemRange], counts: Sequence[Count]) -> Acks:
    results = [one for one in items if isinstance(one, Result)]
    plain = [one for one in items if not isinstance(one, Result)] if results else items
    return Acks(cast("Sequence[str]", plain), ranges, counts, results=results)


def _kept(reason: str) -> str:
    """The part of a reason that is kept."""
    if not isinstance(reason, str):
        raise InvalidRequest(f"a reason must be text, not {shown(reason)}; write str(error) for an error")
    return reason[:MAX_REASON]


def item_bytes(item: str | Result) -> int:
    """Most bytes of an item that is done, with what it brings to totals, in a request.

    Raises:
        InvalidRequest: a value is not a whole number within ±2⁵³.
    """
    if not isinstance(item, Result):
        return 3 + len(str(item))  # the service says what is wrong with an id that is not text
    return 24 + len(str(item.item)) + _values_bytes(item.totals)


def failure_bytes(failure: Failure) -> int:
    """Most bytes of a failure in a request.

    Raises:
        InvalidRequest: a value is not a whole number within ±2⁵³, or SQS delivers no such message.
    """
    message = 0 if failure.message is None else len(pack(checked_message(failure.message)))
    reason = 6 * len(failure.reason)  # six: the longest escape JSON has
    return 64 + len(failure.item) + reason + message + _values_bytes(failure.totals)


def _values_bytes(totals: Mapping[str, int]) -> int:
    return 12 + len(compact(dict(check_values(totals)))) if totals else 0
