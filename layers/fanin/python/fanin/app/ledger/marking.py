"""Marking items: parse a request, plan what it clears in each batch, write it, and judge every mark.

A bad mark affects no other mark, and a batch that cannot be written now affects no other batch. The first
mark of an item decides, with its values for the totals, also within a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce

from fanin.app.failures.notes import Failing, FailureNotes
from fanin.app.ledger.held import Held
from fanin.app.ledger.issued import check_issued
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.requests import Share, Span, shares_of
from fanin.app.ledger.settle import Settler, brought
from fanin.app.ledger.tolerance import Tolerating
from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow
from fanin.app.ports.words import Outcome, Tally, WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.ids import Block
from fanin.domain.marks import Count, Done, Failure, GivenUp, Mark, Marked, Receipt, weight
from fanin.domain.totals import MAX_VALUE, in_order, plus
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    FaninError,
    InvalidItemId,
    InvalidRequest,
    OutcomeUnknown,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from fanin.wire.messages import pack

_GONE = (BatchNotFound, BatchGone)


@dataclass
class _Plan:
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


@dataclass
class _Call:
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
        verdicts = self.refused if isinstance(error, _GONE) else self.left
        verdicts |= dict.fromkeys(places, error)

    def settles(self, place: int) -> bool:
        """Whether no error is known of a mark."""
        return place not in self.left and place not in self.refused

    def end(self, share: Share, batch: Batch) -> None:
        """Judge the share of a batch that had ended before: nothing was written."""
        receipt = _receipt(batch)
        if batch.all_done:
            ranged = sum(span.size for span in share.spans)
            duplicates = self.ids(place for place, _ in share.items)
            self.receipts[batch.batch_id] = replace(receipt, duplicates=duplicates, ranged=ranged)
        else:
            self.receipts[batch.batch_id] = replace(receipt, late=share.total)


class Marking:
    """The marking side of the ledger.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
        settler: clears bits and settles what they finish.
        tolerating: ends batches in which too much fails.
    """

    def __init__(self, ports: Ports, known: KnownBatches, settler: Settler, tolerating: Tolerating) -> None:
        self._ports = ports
        self._tree = ports.tree
        self._known = known
        self._settler = settler
        self._notes = FailureNotes(ports)
        self._held = Held(ports)
        self._tolerating = tolerating

    def mark(self, marks: Sequence[Mark], *, most: int = MAX_VALUE, whole: bool = True) -> Marked:
        """Mark items, and judge every mark.

        Args:
            marks: in the order in which they happened.
            most: bound of a value for a total, positive or negative.
            whole: whether the values are exact; the sums of a nested batch may not be.

        Raises:
            RequestTooLarge: the marks weigh too much; nothing was done.
        """
        heavy = sum(map(weight, marks))
        if heavy > limits.MAX_MARKS:
            raise RequestTooLarge(
                f"a request takes marks up to a weight of {limits.MAX_MARKS}, of which an item id is 1 and a"
                f" failure, a range or a count 10; these weigh {heavy}: send the rest in another call"
            )
        call = _Call(marks, whole)
        shares = shares_of(marks, call.refused, most)
        batches = self._batches(shares, call)
        plans: dict[int, _Plan] = {}
        for batch_id, batch in batches.items():
            share = self._checked(shares[batch_id], batch, call)
            if share.total and batch.state.terminal:
                call.end(share, batch)
            elif share.total:
                plans[batch_id] = self._plan(share, batch, call)
        self._note(plans, call)
        exact = [plan for plan in plans.values() if plan.batch.mode is Mode.EXACT]
        self._look_above(exact, call)
        exact = [plan for plan in exact if plan.batch.batch_id not in call.receipts]
        self._judge(exact, self._settle(exact, call), call)
        for plan in plans.values():
            if plan.batch.mode is Mode.ESTIMATED:
                self._count(plan, call)
        receipts = [call.receipts[batch_id] for batch_id in shares if batch_id in call.receipts]
        verdicts = (dict(sorted(one.items())) for one in (call.refused, call.left, call.unknown))
        return Marked(self._tolerating.note(receipts, batches), *verdicts)

    def _batches(self, shares: Mapping[int, Share], call: _Call) -> dict[int, Batch]:
        """Read the batches of a request.

        Those with failures are read as they are now: nothing is kept of failures in a batch that has ended.
        """
        stops = {share.batch_id: share.stop for share in shares.values()}
        anew = [share.batch_id for share in shares.values() if any(map(call.fails, share.places))]
        rows = self._known.try_reaching(stops, anew=anew) if shares else {}
        batches: dict[int, Batch] = {}
        for batch_id, share in shares.items():
            row = rows[batch_id]
            if isinstance(row, FaninError):
                call.fail(share.places, row)
            else:
                batches[batch_id] = row
        return batches

    def _checked(self, share: Share, batch: Batch, call: _Call) -> Share:
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
            if values := call.values(place):
                try:
                    in_order(values, names, batch_id=batch.batch_id)
                except InvalidRequest as error:
                    refused.setdefault(place, error)
        if share.counts and batch.mode is Mode.EXACT:
            exact = InvalidRequest(
                f"batch {batch.batch_id} is exact: acknowledge its items by their ids, not by a count"
            )
            refused |= dict.fromkeys(share.counts, exact)
        call.refused |= refused
        return share.without(refused) if refused else share

    def _plan(self, share: Share, batch: Batch, call: _Call) -> _Plan:
        """Find the first mark of each item, and the ranges that one call can mark."""
        plan = _Plan(batch, share)
        if batch.mode is Mode.ESTIMATED:
            failing = [(ordinal, place) for place, ordinal in share.items if call.fails(place)]
            plan.failing = dict(reversed(failing))  # the first of each item
            return plan
        fitting = self._fitting(share, batch, call)
        spans = [span for span in share.spans if span.place not in call.refused]
        for place, ordinal in share.items:
            fails = call.fails(place)
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
                call.left[span.place] = Throttled(
                    "a failure of one of its items goes first; repeat this range"
                )
            elif span.place in fitting:
                plan.spans.append(span)
        return plan

    def _fitting(self, share: Share, batch: Batch, call: _Call) -> set[int]:
        """The places of ranges that one call can mark; of batches with totals, it marks item by item."""
        if not batch.totals:
            return {span.place for span in share.spans}
        fitting: set[int] = set()
        room = limits.MAX_MARKS
        by_item = "ranges of batches with totals are marked item by item"
        for span in share.spans:
            if span.size > limits.MAX_MARKS:
                call.refused[span.place] = RequestTooLarge(
                    f"{by_item}: name at most {limits.MAX_MARKS} items by one, not {span.size}"
                )
            elif span.size > room:
                call.left[span.place] = Throttled(
                    f"{by_item}, {limits.MAX_MARKS} in a call; repeat this range"
                )
            else:
                room -= span.size
                fitting.add(span.place)
        return fitting

    def _note(self, plans: Mapping[int, _Plan], call: _Call) -> None:
        """Keep what is known of failures, before their items are marked."""
        failing = [_failing(plan, call) for plan in plans.values() if plan.failures]
        try:
            refused = self._notes.write(failing) if failing else {}
        except (Throttled, ServiceUnavailable) as error:
            for one in failing:
                plan = plans[one.batch.batch_id]
                self._leave_out(plan, dict.fromkeys(plan.failures, error), call)
            return
        for one in failing:
            batch_id = one.batch.batch_id
            errors = {ordinal: error for (of, ordinal), error in refused.items() if of == batch_id}
            self._leave_out(plans[batch_id], errors, call)

    def _leave_out(self, plan: _Plan, errors: Mapping[int, FaninError], call: _Call) -> None:
        """Take failures out of a plan, by their ordinals, and judge their marks."""
        for ordinal, error in errors.items():
            verdicts = call.refused if isinstance(error, InvalidRequest) else call.left
            if ordinal in plan.failing:
                plan.first.pop(ordinal, None)
                verdicts[plan.failing.pop(ordinal)] = error
            else:
                verdicts[plan.held.pop(ordinal)] = error

    def _look_above(self, plans: Iterable[_Plan], call: _Call) -> None:
        """Find failures of items that a range has marked as done, higher up in the tree.

        Only failures need these reads: an item that succeeded must not be listed as failed. So after its
        failure was noted, and before it is marked, the words above it are read, up to the present root. The
        batch is read again for that, because a row from before may have fewer levels.
        """
        failing = {plan.batch.batch_id: plan for plan in plans if plan.failures}
        stops = {batch_id: plan.share.stop for batch_id, plan in failing.items()}
        for batch_id, row in (self._known.try_reaching(stops, anew=stops) if stops else {}).items():
            plan = failing[batch_id]
            if isinstance(row, FaninError):
                self._leave_out(plan, dict.fromkeys(plan.failures, row), call)
            elif row.state.terminal:
                call.end(plan.share.without({*call.refused, *call.left}), row)
            else:
                plan.batch = row
                try:
                    below = self._held.below_pending(row, plan.failing)
                    held = self._held.pending(row, plan.held)
                except (Throttled, ServiceUnavailable) as error:
                    self._leave_out(plan, dict.fromkeys(plan.failures, error), call)
                    continue
                plan.covered = plan.failing.keys() - below
                done = {ordinal: plan.held.pop(ordinal) for ordinal in plan.held.keys() - held}
                plan.repeats |= {place: place for place in done.values()}

    def _settle(self, plans: Sequence[_Plan], call: _Call) -> dict[WordKey, Outcome]:
        """Write the words of all plans together."""
        masks: dict[WordKey, int] = {}
        failed: dict[WordKey, int] = {}
        values: dict[WordKey, Mapping[int, Tally]] = {}
        for plan in plans:
            masks |= self._masks(plan)
            fails = (ordinal for ordinal in plan.failing if ordinal not in plan.covered)
            failed |= self._leaves(plan.batch, fails)
            if plan.batch.totals:
                placed = ((ordinal, call.values(place)) for ordinal, place in plan.first.items())
                values |= brought(plan.batch, placed, self._tree, whole=call.whole)
        if not masks:
            return {}
        try:
            return self._settler.try_to_settle(masks, failed=failed, brought=values)
        except (Throttled, ServiceUnavailable, *_GONE) as error:  # of a row that the cache has dropped
            return dict.fromkeys(masks, error)

    def _masks(self, plan: _Plan) -> dict[WordKey, int]:
        """All bits that a plan clears."""
        masks = self._leaves(plan.batch, plan.first)
        for span in plan.spans:
            for key, mask in self._cover(span, plan.batch).items():
                masks[key] = masks.get(key, 0) | mask
        return masks

    def _leaves(self, batch: Batch, ordinals: Iterable[int]) -> dict[WordKey, int]:
        """The bits of items."""
        masks = self._tree.masks(ordinals)
        return {WordKey(batch.batch_id, 0, number): mask for number, mask in masks.items()}

    def _cover(self, span: Span, batch: Batch) -> dict[WordKey, int]:
        """The bits that stand for a range.

        In a batch with totals these are the bits of its items: a bit higher up would skip the values that
        unfinished words below it have.
        """
        if batch.totals:
            return self._leaves(batch, range(span.start, span.stop))
        cover = self._tree.cover(span.start, span.stop, batch.items)
        return {WordKey(batch.batch_id, bits.level, bits.number): bits.mask for bits in cover}

    def _judge(self, plans: Iterable[_Plan], outcomes: Mapping[WordKey, Outcome], call: _Call) -> None:
        """Judge the marks of plans, whose words were written as far as they could be."""
        for plan in plans:
            done: list[int] = []
            first, failed = self._judge_items(plan, outcomes, done, call)
            ranged = self._judge_ranges(plan, outcomes, call)
            for place, earlier in plan.repeats.items():
                if call.settles(earlier):
                    done.append(place)
                else:
                    call.left[place] = Throttled(
                        "an earlier mark of the item is not settled; repeat this one"
                    )
            if not (first or ranged or done or plan.held):
                continue
            batch_id = plan.batch.batch_id
            row = self._known.cached(batch_id) or plan.batch
            try:
                self._known.touch(row)
            except (Throttled, ServiceUnavailable) as busy:
                if not any(place in call.left for place in plan.share.places):
                    call.fail(filter(call.settles, plan.share.places), busy)
                    continue  # the repeat records the activity
            call.receipts[batch_id] = replace(
                _receipt(row),
                first=first,
                failed=failed,
                duplicates=call.ids(sorted(done)),
                ranged=ranged,
                held=len(plan.held),
            )

    def _judge_items(
        self, plan: _Plan, outcomes: Mapping[WordKey, Outcome], done: list[int], call: _Call
    ) -> tuple[int, int]:
        """How many items the plan marked first, and how many of them failed.

        ``done`` gets the places of marks whose items were marked before.
        """
        batch_id, width, bits = plan.batch.batch_id, self._tree.width, self._tree.bits
        first = failed = 0
        for ordinal, place in plan.first.items():
            number, at = divmod(ordinal, width)
            outcome = outcomes[WordKey(batch_id, 0, number)]
            if isinstance(outcome, FaninError):
                call.fail([place], outcome)
            elif outcome.first & bits[at] and ordinal not in plan.covered:
                first += 1
                failed += ordinal in plan.failing
            else:
                done.append(place)
        return first, failed

    def _judge_ranges(self, plan: _Plan, outcomes: Mapping[WordKey, Outcome], call: _Call) -> int:
        """How many items the marked ranges have; ranges that could not be marked are judged."""
        ranged = 0
        for span in plan.spans:
            found = (outcomes[key] for key in self._cover(span, plan.batch))
            error = next((one for one in found if isinstance(one, FaninError)), None)
            if error is None:
                ranged += span.size
            else:
                call.fail([span.place], error)
        return ranged

    def _count(self, plan: _Plan, call: _Call) -> None:
        """Count the share of an estimated batch, which has no bits and counts every repeat."""
        batch, share = plan.batch, plan.share.without({*call.refused, *call.left})
        if not share.total:
            return
        names, places = tuple(batch.totals), list(share.places)
        values = (in_order(call.values(place), names, batch_id=batch.batch_id) for place in places)
        sums = reduce(plus, values, (0,) * len(names)) if names else ()
        try:
            activity = self._known.activity(batch)
            row = self._ports.batches.count(batch.batch_id, share.total, activity=activity, sums=sums)
            if row is None:
                call.end(share, self._known.current(batch.batch_id))
                return
        except OutcomeUnknown as error:
            call.unknown |= dict.fromkeys(places, error)
            return
        except (Throttled, ServiceUnavailable, *_GONE) as error:
            call.fail(places, error)
            return
        row = self._known.remember(row)
        with suppress(Throttled, ServiceUnavailable, *_GONE):  # it is counted; the reaper completes the batch
            row = self._settler.finish(row)
        failed = sum(map(call.fails, places))
        call.receipts[batch.batch_id] = replace(_receipt(row), failed=failed, ranged=share.total)


def _earlier(plan: _Plan, spans: Iterable[Span], place: int, ordinal: int, *, fails: bool) -> int | None:
    """An earlier mark of the same item, which decides. A held failure decides nothing but failures."""
    if ordinal in plan.first:
        return plan.first[ordinal]
    if fails and ordinal in plan.held:
        return plan.held[ordinal]
    return next((s.place for s in spans if s.place < place and s.start <= ordinal < s.stop), None)


def _waits(span: Span, plan: _Plan) -> bool:
    """Whether an earlier mark says that an item of a range has failed."""
    failing = plan.failing.items()
    return any(place < span.place and span.start <= n < span.stop for n, place in failing)


def _receipt(row: Batch) -> Receipt:
    return Receipt(row.batch_id, row.user_key, row.state, complete=row.state is State.COMPLETE)


def _failing(plan: _Plan, call: _Call) -> Failing:
    """What is to be kept of the failures of a batch."""
    notes: list[FailureRow] = []
    messages: dict[int, bytes] = {}
    for ordinal, place in plan.failures.items():
        failure = call.marks[place]
        if isinstance(failure, Failure):
            item, reason, totals = failure.item, failure.reason, tuple(sorted(failure.totals.items()))
            row = FailureRow(
                ordinal,
                item,
                reason,
                failure.attempts,
                source=failure.source,
                totals=totals,
                given_up=isinstance(failure, GivenUp),
            )
            notes.append(row)
            if failure.message is not None:
                messages[ordinal] = pack(failure.message)
    return Failing(plan.batch, notes, messages)
