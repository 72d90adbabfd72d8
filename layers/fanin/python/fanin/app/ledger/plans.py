"""Plans what a request does to each batch, and collects the verdicts. Nothing is read or written here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fanin.app.ledger.issued import check_issued
from fanin.app.ledger.shares import Share, Span
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.ids import Block
from fanin.domain.marks import Count, Done, Failure, Mark, Receipt
from fanin.domain.totals import in_order
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    FaninError,
    InvalidItemId,
    InvalidRequest,
    RequestTooLarge,
    Throttled,
)

GONE = (BatchNotFound, BatchGone)


@dataclass
class Verdicts:
    """One request, and the verdicts so far; see ``Marked``.

    Attributes:
        marks: of the request.
        whole: whether the values are exact; the sums of a nested batch may not be.
    """

    marks: Sequence[Mark]
    whole: bool
    receipts: dict[int, Receipt] = field(default_factory=dict)
    refused: dict[int, FaninError] = field(default_factory=dict)
    left: dict[int, FaninError] = field(default_factory=dict)
    unknown: dict[int, FaninError] = field(default_factory=dict)

    def fails(self, place: int) -> bool:
        """Whether a mark says that its item failed."""
        return isinstance(self.marks[place], Failure)

    def values(self, place: int) -> Mapping[str, int]:
        """What a mark brings to the totals of its batch."""
        mark = self.marks[place]
        return mark.totals if isinstance(mark, Done | Failure | Count) else {}

    def ids(self, places: Iterable[int]) -> tuple[str, ...]:
        """The item ids of marks."""
        named = (self.marks[place] for place in places)
        return tuple(mark.item if isinstance(mark, Done | Failure) else str(mark) for mark in named)

    def fail(self, places: Iterable[int], error: FaninError) -> None:
        """Refuse marks whose batch is gone, and leave the others for a repeat."""
        where = self.refused if isinstance(error, GONE) else self.left
        where |= dict.fromkeys(places, error)

    def settles(self, place: int) -> bool:
        """Whether no error is known of a mark."""
        return place not in self.left and place not in self.refused

    def end(self, share: Share, batch: Batch) -> None:
        """Judge the share of a batch that had ended before: nothing was written."""
        receipt = receipt_of(batch)
        if batch.all_done:
            ranged = sum(span.size for span in share.spans)
            duplicates = self.ids(place for place, _ in share.items)
            self.receipts[batch.batch_id] = replace(receipt, duplicates=duplicates, ranged=ranged)
        else:
            self.receipts[batch.batch_id] = replace(receipt, late=share.total)


@dataclass
class Plan:
    """What a request does to one live batch; marks are named by their places.

    Attributes:
        batch: the row.
        share: the marks of the batch.
        first: ordinal → the mark that clears the bit of the item, the item's first; only in exact mode.
        held: ordinal → the first failure of an item that its batch holds.
        failing: ordinal → the failure of an item; of those that are not held.
        covered: ordinals of failures whose items a range has marked from above. Their bits are cleared all
            the same, not as failed, since a repeat must settle what an earlier call left.
        repeats: mark → an earlier mark of the same item, which decides.
        spans: ranges; one that follows a failure of its own items is left for a repeat.
    """

    batch: Batch
    share: Share
    first: dict[int, int] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    failing: dict[int, int] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)
    repeats: dict[int, int] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)

    @property
    def failures(self) -> dict[int, int]:
        """Ordinal → the mark, of all items that fail."""
        return self.failing | self.held

    def leave_out(self, errors: Mapping[int, FaninError], verdicts: Verdicts) -> None:
        """Take failures out, by their ordinals, and judge their marks."""
        for ordinal, error in errors.items():
            where = verdicts.refused if isinstance(error, InvalidRequest) else verdicts.left
            if ordinal in self.failing:
                self.first.pop(ordinal, None)
                where[self.failing.pop(ordinal)] = error
            else:
                where[self.held.pop(ordinal)] = error


def checked(share: Share, batch: Batch, verdicts: Verdicts) -> Share:
    """Refuse ids that were not issued, and what the batch cannot take; return the share without these."""
    names = tuple(batch.totals)
    refused: dict[int, FaninError] = {}

    def check(block: Block, places: Iterable[int]) -> None:
        try:
            check_issued(block, batch)
        except InvalidItemId as error:
            refused.update(dict.fromkeys(places, error))

    for named in share.named:
        check(named.block, named.places)
    for span in share.spans:
        check(span.block, [span.place])
    for place in share.places:
        if values := verdicts.values(place):
            try:
                in_order(values, names, batch_id=batch.batch_id)
            except InvalidRequest as error:
                refused.setdefault(place, error)
    if share.counts and batch.mode is Mode.EXACT:
        exact = InvalidRequest(
            f"batch {batch.batch_id} is exact: acknowledge its items by their ids, not by a count"
        )
        refused |= dict.fromkeys(share.counts, exact)
    verdicts.refused |= refused
    return share.without(refused) if refused else share


def plan_of(share: Share, batch: Batch, verdicts: Verdicts) -> Plan:
    """Find the first mark of each item, and the ranges that one call can mark."""
    plan = Plan(batch, share)
    if batch.mode is Mode.ESTIMATED:
        failing = [(ordinal, place) for place, ordinal in share.items if verdicts.fails(place)]
        plan.failing = dict(reversed(failing))  # the first of each item
        return plan
    fitting = _fitting(share, batch, verdicts)
    spans = [span for span in share.spans if span.place not in verdicts.refused]
    for place, ordinal in share.items:
        fails = verdicts.fails(place)
        earlier = _earlier(plan, spans, place, ordinal, fails=fails)
        if earlier is not None:
            plan.repeats[place] = earlier
            continue
        if not (fails and batch.holds):
            plan.first[ordinal] = place
        if fails:
            (plan.held if batch.holds else plan.failing)[ordinal] = place
    for span in spans:
        if _waits(span, plan):
            verdicts.left[span.place] = Throttled("one of its items fails first; repeat this range")
        elif span.place in fitting:
            plan.spans.append(span)
    return plan


def _fitting(share: Share, batch: Batch, verdicts: Verdicts) -> set[int]:
    """The places of ranges that one call can mark; of batches with totals, it marks item by item."""
    if not batch.totals:
        return {span.place for span in share.spans}
    fitting: set[int] = set()
    room = limits.MAX_MARKS
    by_item = "ranges of batches with totals are marked item by item"
    for span in share.spans:
        if span.size > limits.MAX_MARKS:
            verdicts.refused[span.place] = RequestTooLarge(
                f"{by_item}: name at most {limits.MAX_MARKS} items by one, not {span.size}"
            )
        elif span.size > room:
            verdicts.left[span.place] = Throttled(f"{by_item}, {limits.MAX_MARKS} a call; repeat this range")
        else:
            room -= span.size
            fitting.add(span.place)
    return fitting


def _earlier(plan: Plan, spans: Iterable[Span], place: int, ordinal: int, *, fails: bool) -> int | None:
    """An earlier mark of the same item, which decides. A held failure decides nothing but failures."""
    if ordinal in plan.first:
        return plan.first[ordinal]
    if fails and ordinal in plan.held:
        return plan.held[ordinal]
    return next((s.place for s in spans if s.place < place and s.start <= ordinal < s.stop), None)


def _waits(span: Span, plan: Plan) -> bool:
    """Whether an earlier mark says that an item of a range has failed."""
    failing = plan.failing.items()
    return any(place < span.place and span.start <= n < span.stop for n, place in failing)


def receipt_of(row: Batch) -> Receipt:
    return Receipt(row.batch_id, row.user_key, row.state, complete=row.state is State.COMPLETE)
