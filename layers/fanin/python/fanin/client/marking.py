"""The calls that mark items: a stream of any length, in as many requests as it needs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from fanin.adapters.backoff import Backoff
from fanin.client.reading import ReadingCalls
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import Group
from fanin.domain.limits import MAX_REASON, shown
from fanin.domain.marks import Count, Done, Failure, ItemRange, Malformed, Mark, Marked, Receipt, merge
from fanin.domain.totals import check_values
from fanin.errors import (
    FaninError,
    InvalidRequest,
    OutcomeUnknown,
    PartlyMarked,
    ServiceUnavailable,
    Throttled,
)
from fanin.wire.marks import requests

REPEATS: Final = Backoff(tries=5, base=0.2, cap=2.0)
"""Tries of a request that leaves some marks. The count starts again when a try has settled some of them."""

_ONE: Final = (str, Group, Done, Failure, ItemRange, Count)


class MarkingCalls(ReadingCalls):
    """The calls that mark items done or failed, which every ``Tracker`` has.

    Those of exact batches may be repeated at will; what estimated batches count may not.
    """

    def ack(
        self,
        marks: Mark | Group | Iterable[Mark | Group] = (),
        *,
        totals: Mapping[str, int] | None = None,
        result: Any = None,
    ) -> list[Receipt]:
        """Mark items done: any number, of any batches, each for itself.

        More than one request can carry is sent in several, one after the other. The first mark of an item
        decides, with the totals that it brings.

        Args:
            marks: an item id, or several; a whole group, which is sent as one range; an ``ItemRange``; a
                ``Done``, for an item with values for the totals of its batch; a ``Count``, for items of an
                estimated batch; or a ``Failure``.
            totals: the values of a single item id for the totals of its batch: whole numbers within ±2⁵³ by
                name. They count once, with the first mark of the item.
            result: of a single item id: any JSON value of up to 1 MiB. Its batch was opened with
                ``results=True``. The first result that is stored for an item is its result.

        Returns:
            One receipt for each batch.

        Raises:
            InvalidItemId: the id is malformed, forged, or beyond its batch.
            InvalidRequest: a value is not a whole number, or the batch of its item has no such total; the
                result is not JSON, or the batch keeps none.
            BatchNotFound, BatchGone: the batch of the item does not exist, or is gone.
            PartlyMarked: of several marks, some are not settled; it says which, and why. All others are.
        """
        if totals is not None or result is not None:
            if not isinstance(marks, str):
                raise InvalidRequest(
                    "totals and a result go with a single item id; give several items as"
                    " Done(item, totals, result)"
                )
            marks = Done(marks, check_values(totals or {}), result)
        return self._settled(each(marks))

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
            InvalidItemId: the id is malformed, forged, or beyond its batch.
            InvalidRequest: a value is not a whole number, or the batch of its item has no such total.
            RequestTooLarge: the message has more than 4 MiB as JSON.
            BatchNotFound, BatchGone: the batch of the item does not exist, or is gone.
            PartlyMarked: of several items, some are not marked; it says which, and why. All others are.
        """
        if totals is not None and not isinstance(items, str):
            raise InvalidRequest(
                "totals go with a single item id; give several items as Failure(item, reason, totals=…)"
            )
        named = [items] if isinstance(items, str | Failure) else items
        kept = KeptMessage(message) if isinstance(message, str) else message
        like = Failure("", _cut(reason), kept, totals=check_values(totals or {}))
        if not isinstance(named, Iterable):
            raise InvalidRequest(f"items must be ids or Failures, one or several, not {shown(named)}")
        return self._settled(_failure(item, like) for item in named)

    def mark(self, marks: Mark | Group | Iterable[Mark | Group]) -> Marked:
        """Mark items like ``ack``, but return the verdicts instead of raising what is not settled.

        Args:
            marks: as in ``ack``, in the order in which they happened.

        Returns:
            The receipts, and what is not settled, by the places of the marks.
        """
        return merge(part for _, part in self._parts(each(marks)))

    def _settled(self, marks: Iterable[Mark]) -> list[Receipt]:
        """Mark a stream, a request at a time; raise what is not settled."""
        parts, unsettled, of = list[Marked](), dict[int, Mark](), 0
        for some, part in self._parts(marks):
            unsettled |= {place: some[place] for place in part.unsettled}
            parts.append(part)
            of = max(some) + 1
        merged = merge(parts)
        if unsettled:
            raise error_of(merged, unsettled, of=of)
        return list(merged.receipts)

    def _parts(self, marks: Iterable[Mark]) -> Iterator[tuple[Mapping[int, Mark], Marked]]:
        """Mark a stream, a request at a time; once a request leaves marks, later ones are not sent.

        Yields:
            The marks of a request by their places in the stream, and the verdicts of a try on some of them.
        """
        start = 0
        busy: FaninError | None = None
        for request in requests(marks):
            some = dict(enumerate(request, start))
            start += len(some)
            for part in [Marked((), left=dict.fromkeys(some, busy))] if busy else self._tries(some):
                if part.left and busy is None:
                    why = next(iter(part.left.values()))
                    busy = Throttled(f"not sent, since an earlier request left marks: {why}")
                yield some, part

    def _tries(self, marks: Mapping[int, Mark]) -> Iterator[Marked]:
        """Make one request, and repeat what it leaves, unless an estimated batch may have counted that.

        Yields:
            The verdicts of a try, but on what is repeated.
        """
        tries, backoff = 0, replace(REPEATS, sleep=self.clock.sleep)
        while marks:
            some, answered = list(marks.values()), True
            try:
                marked = self.ledger.mark(some)
            except (Throttled, ServiceUnavailable) as error:  # the ledger has repeated it already
                marked, answered = Marked((), left=dict.fromkeys(range(len(some)), error)), False
            self.ended.learn(some, marked)
            part = marked.at(list(marks))
            again = {n: marks[n] for n, why in part.left.items() if not isinstance(why, OutcomeUnknown)}
            tries = tries + 1 if len(again) == len(marks) else 1
            if not answered or tries == backoff.tries:
                again = {}
            yield replace(part, left={n: why for n, why in part.left.items() if n not in again})
            if again:
                backoff.wait(tries - 1)
            marks = again


def error_of(marked: Marked, marks: Mapping[int, Mark], *, of: int) -> FaninError:
    """The error of a call that has not settled all its marks.

    Args:
        marked: the verdicts.
        marks: those that are not settled, by place.
        of: how many marks the call had.

    Returns:
        The error of its only mark; of several marks, ``PartlyMarked``.
    """
    errors = marked.unsettled
    place = min(errors)
    if of == 1:
        return errors[place]
    error = PartlyMarked(
        f"of {of} marks {len(marked.refused)} are refused, {len(marked.left)} left and {len(marked.unknown)}"
        f" unknown; the first is number {place}: {errors[place]}; the lists of these names have the marks,"
        " each with its error; repeat those that are left",
        receipts=marked.receipts,
        refused=[(marks[place], why) for place, why in sorted(marked.refused.items())],
        left=[(marks[place], why) for place, why in sorted(marked.left.items())],
        unknown=[(marks[place], why) for place, why in sorted(marked.unknown.items())],
    )
    error.__cause__ = errors[place]
    return error


def each(marks: Mark | Group | Iterable[Mark | Group]) -> Iterator[Mark]:
    """Marks one by one; a group is a range."""
    if isinstance(marks, _ONE):
        marks = (marks,)
    if not isinstance(marks, Iterable):
        raise InvalidRequest(
            f"marks must be an item id, a group, a range, or several of these, not {shown(marks)};"
            " of a missing range pass its items"
        )
    for mark in marks:
        yield ItemRange(mark.prefix) if isinstance(mark, Group) else mark


def _failure(item: str | Failure, like: Failure) -> Mark:
    """One entry of a call that fails items, with what the call says of all ids."""
    try:
        if isinstance(item, Failure):
            return replace(item, reason=_cut(item.reason))
        return replace(like, item=item)
    except InvalidRequest as error:
        return Malformed(error)


def _cut(reason: str) -> str:
    """The part of a reason that is kept."""
    if not isinstance(reason, str):
        raise InvalidRequest(f"a reason must be text, not {shown(reason)}; write str(error) for an error")
    return reason[:MAX_REASON]
