"""Marking items: parse a request, plan what it clears in each batch, write it, and judge every mark.

A bad mark affects no other mark, and a batch that cannot be written now affects no other batch. The first
mark of an item decides, with its values for the totals, also within a request.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import chain

from fanin.app.failures import Failing, write_notes
from fanin.app.ledger.failures import keep_results
from fanin.app.ledger.plans import Plan, Share, Span, Verdicts, accepted, plan_of, receipt_of, shares_of
from fanin.app.ledger.settle import brought
from fanin.app.ledger.watching import Watching
from fanin.app.ports.parts import FailureRow
from fanin.app.ports.words import Cleared, Outcome, Tally, WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, Mode
from fanin.domain.marks import Done, Failure, GivenUp, Mark, Marked, weight
from fanin.domain.totals import MAX_CHILD_SUM, MAX_VALUE, in_order, plus
from fanin.errors import GONE, FaninError, OutcomeUnknown, RequestTooLarge, ServiceUnavailable, Throttled
from fanin.wire.messages import pack


class Marking(Watching):
    """The marking side of the ledger."""

    def mark(self, marks: Sequence[Mark]) -> Marked:
        """Mark items, and judge every mark."""
        return self._mark(marks, MAX_VALUE, whole=True)

    def mark_parent(self, mark: Done | Failure, *, exact: bool) -> Marked:
        """Mark the parent item of a complete batch, with sums that may be larger than other values."""
        return self._mark([mark], MAX_CHILD_SUM, whole=exact)

    def _mark(self, marks: Sequence[Mark], most: int, *, whole: bool) -> Marked:
        """Mark items.

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
        verdicts = Verdicts(marks, whole)
        shares = shares_of(marks, verdicts.refused, most)
        batches = self._batches(shares, verdicts)
        plans: dict[int, Plan] = {}
        for batch_id, batch in batches.items():
            share = accepted(shares[batch_id], batch, verdicts)
            if share.total and batch.state.terminal:
                verdicts.end(share, batch)
            elif share.total:
                plans[batch_id] = plan_of(share, batch, verdicts)
        if failing := {batch_id: plan for batch_id, plan in plans.items() if plan.failures}:
            self._keep_failures(failing, verdicts)
            self._look_above(failing, verdicts)
        live = [plan for plan in plans.values() if plan.batch.batch_id not in verdicts.receipts]
        exact = [plan for plan in live if plan.batch.mode is Mode.EXACT]
        self._keep_results(exact, verdicts)
        outcomes = self._write(exact, verdicts)
        self._judge(exact, outcomes, verdicts)
        for plan in live:
            if plan.batch.mode is Mode.ESTIMATED:
                self._count(plan, verdicts)
            if plan.failures or plan.batch.milestones:
                self._tell_of(plan, outcomes, verdicts)
        receipts = [
            self._note_failures(verdicts.receipts[batch_id], batches[batch_id])
            for batch_id in shares
            if batch_id in verdicts.receipts
        ]
        unsettled = (dict(sorted(one.items())) for one in (verdicts.refused, verdicts.left, verdicts.unknown))
        return Marked(receipts, *unsettled)

    def _batches(self, shares: Mapping[int, Share], verdicts: Verdicts) -> dict[int, Batch]:
        """Read the batches of a request.

        Those with failures are read as they are now: nothing is kept of failures in a batch that has ended.
        """
        stops = {share.batch_id: share.stop for share in shares.values()}
        anew = [share.batch_id for share in shares.values() if any(map(verdicts.fails, share.detailed))]
        rows = self._known.try_reaching(stops, anew=anew) if shares else {}
        for batch_id, share in shares.items():
            if isinstance(row := rows[batch_id], FaninError):
                verdicts.fail(share.places, row)
        return {batch_id: row for batch_id in shares if isinstance(row := rows[batch_id], Batch)}

    def _keep_failures(self, plans: Mapping[int, Plan], verdicts: Verdicts) -> None:
        """Keep what is known of failures, before their items are marked."""
        try:
            refused = write_notes(self.ports, [_failing(plan, verdicts) for plan in plans.values()])
        except (Throttled, ServiceUnavailable) as error:
            for plan in plans.values():
                plan.leave_out(plan.failures, error, verdicts)
            return
        for (batch_id, ordinal), why in refused.items():
            plans[batch_id].leave_out([ordinal], why, verdicts)

    def _look_above(self, plans: Mapping[int, Plan], verdicts: Verdicts) -> None:
        """Find failures of items that a range has marked as done, higher up in the tree.

        Only failures need these reads: an item that succeeded must not be listed as failed. So after its
        failure was noted, and before it is marked, the words above it are read, up to the present root. The
        batch is read again for that, because a row from before may have fewer levels.
        """
        exact = (plan for plan in plans.values() if plan.failures and plan.batch.mode is Mode.EXACT)
        stops = {plan.batch.batch_id: plan.share.stop for plan in exact}
        for batch_id, row in (self._known.try_reaching(stops, anew=stops) if stops else {}).items():
            plan = plans[batch_id]
            if isinstance(row, FaninError):
                plan.leave_out(plan.failures, row, verdicts)
            elif row.state.terminal:
                verdicts.end(plan.share.without({*verdicts.refused, *verdicts.left}), row)
            else:
                plan.batch = row
                try:
                    below = self._held.below_pending(row, plan.failing)
                    held = self._held.pending(row, plan.held)
                except (Throttled, ServiceUnavailable) as error:
                    plan.leave_out(plan.failures, error, verdicts)
                    continue
                plan.covered = plan.failing.keys() - below
                done = {ordinal: plan.held.pop(ordinal) for ordinal in plan.held.keys() - held}
                plan.repeats |= {place: place for place in done.values()}

    def _keep_results(self, plans: Iterable[Plan], verdicts: Verdicts) -> None:
        """Store the results of items, before these are marked as done."""
        for plan in plans:
            errors: Mapping[int, FaninError]
            try:
                errors = keep_results(self.ports, plan.batch, plan.results) if plan.results else {}
            except (Throttled, ServiceUnavailable) as error:
                errors = dict.fromkeys(plan.results, error)
            for ordinal, why in errors.items():
                verdicts.fail([plan.first.pop(ordinal)], why)

    def _write(self, plans: Sequence[Plan], verdicts: Verdicts) -> dict[WordKey, Outcome]:
        """Write the words of all plans together."""
        masks: dict[WordKey, int] = {}
        failed: dict[WordKey, int] = {}
        values: dict[WordKey, Mapping[int, Tally]] = {}
        for plan in plans:
            masks |= self._bits_of(plan.batch, plan.first)
            for span in plan.spans:
                for key, mask in self._cover(span, plan.batch).items():
                    masks[key] = masks.get(key, 0) | mask
            fails = (ordinal for ordinal in plan.failing if ordinal not in plan.covered)
            failed |= self._bits_of(plan.batch, fails)
            if plan.batch.totals:
                placed = ((ordinal, verdicts.values(place)) for ordinal, place in plan.first.items())
                values |= brought(plan.batch, placed, self._tree, whole=verdicts.whole)
        if not masks:
            return {}
        try:
            return self.try_to_settle(masks, failed=failed, brought=values)
        except (Throttled, ServiceUnavailable) as error:
            return dict.fromkeys(masks, error)
        except GONE as error:  # of one row, which the cache has dropped; the repeat refuses the marks of that
            return dict.fromkeys(masks, Throttled(f"{error}; repeat the marks of other batches"))

    def _cover(self, span: Span, batch: Batch) -> dict[WordKey, int]:
        """The bits that stand for a range.

        In a batch with totals these are the bits of its items: a bit higher up would skip the values that
        unfinished words below it have.
        """
        if batch.totals:
            return self._bits_of(batch, range(span.start, span.stop))
        cover = self._tree.cover(span.start, span.stop, batch.items)
        return {WordKey(batch.batch_id, bits.level, bits.number): bits.mask for bits in cover}

    def _judge(self, plans: Iterable[Plan], outcomes: Mapping[WordKey, Outcome], verdicts: Verdicts) -> None:
        """Judge the marks of plans, whose words were written as far as they could be."""
        for plan in plans:
            done: list[int] = []
            first, failed = self._judge_items(plan, outcomes, done, verdicts)
            ranged = self._judge_ranges(plan, outcomes, verdicts)
            for place, earlier in plan.repeats.items():
                if verdicts.settles(earlier):
                    done.append(place)
                else:
                    again = Throttled("an earlier mark of the item is not settled; repeat this one")
                    verdicts.left[place] = again
            if not (first or ranged or done or plan.held):
                continue
            batch_id = plan.batch.batch_id
            row = self._known.cached(batch_id) or plan.batch
            try:
                self._known.touch(row)
            except (Throttled, ServiceUnavailable) as busy:
                if not any(place in verdicts.left for place in plan.share.places):
                    verdicts.fail(filter(verdicts.settles, plan.share.places), busy)
                    continue  # the repeat records the activity
            receipt = replace(receipt_of(row), duplicates=verdicts.ids(sorted(done)), held=len(plan.held))
            verdicts.receipts[batch_id] = replace(receipt, first=first, failed=failed, ranged=ranged)

    def _judge_items(
        self, plan: Plan, outcomes: Mapping[WordKey, Outcome], done: list[int], verdicts: Verdicts
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
                verdicts.fail([place], outcome)
            elif outcome.first & bits[at] and ordinal not in plan.covered:
                first += 1
                failed += ordinal in plan.failing
            else:
                done.append(place)
        return first, failed

    def _judge_ranges(self, plan: Plan, outcomes: Mapping[WordKey, Outcome], verdicts: Verdicts) -> int:
        """How many items the marked ranges have; ranges that could not be marked are judged."""
        ranged = 0
        for span in plan.spans:
            found = [outcomes[key] for key in self._cover(span, plan.batch)]
            if errors := [one for one in found if isinstance(one, FaninError)]:
                verdicts.fail([span.place], errors[0])
            else:
                ranged += span.size
        return ranged

    def _tell_of(self, plan: Plan, outcomes: Mapping[WordKey, Outcome], verdicts: Verdicts) -> None:
        """Have told what a plan has changed; words show failures also to the repeat of a lost call."""
        batch = self._known.cached(plan.batch.batch_id) or plan.batch
        receipt = verdicts.receipts.get(batch.batch_id)
        words = {WordKey(batch.batch_id, 0, ordinal // self._tree.width) for ordinal in plan.failing}
        found = [outcome for key in words if isinstance(outcome := outcomes.get(key), Cleared)]
        if plan.held or any(one.tally.failed for one in found) or (receipt and receipt.failed):
            self._note_failed(batch)
        spans = ((span.start, span.stop) for span in plan.spans)
        self._note_marked(batch, chain(spans, ((n, n + 1) for n in plan.first)))

    def _count(self, plan: Plan, verdicts: Verdicts) -> None:
        """Count the share of an estimated batch, which has no bits and counts every repeat."""
        batch, share = plan.batch, plan.share.without({*verdicts.refused, *verdicts.left})
        if not share.total:
            return
        names, places = tuple(batch.totals), list(share.places)
        values = (in_order(verdicts.values(place), names, batch_id=batch.batch_id) for place in places)
        sums = reduce(plus, values, (0,) * len(names)) if names else ()
        try:
            activity = self._known.activity(batch)
            row = self.ports.batches.count(batch.batch_id, share.total, activity=activity, sums=sums)
            if row is None:
                verdicts.end(share, self._known.current(batch.batch_id))
                return
        except OutcomeUnknown as error:
            verdicts.unknown |= dict.fromkeys(places, error)
            return
        except (Throttled, ServiceUnavailable, *GONE) as error:
            verdicts.fail(places, error)
            return
        row = self._known.remember(row)
        with suppress(Throttled, ServiceUnavailable, *GONE):  # it is counted; the reaper completes the batch
            row = self.finish(row)
        failed = sum(map(verdicts.fails, places))
        verdicts.receipts[batch.batch_id] = replace(receipt_of(row), failed=failed, ranged=share.total)


def _failing(plan: Plan, verdicts: Verdicts) -> Failing:
    """What is to be kept of the failures of a batch."""
    notes: list[FailureRow] = []
    messages: dict[int, bytes] = {}
    for ordinal, place in plan.failures.items():
        one = verdicts.marks[place]
        if not isinstance(one, Failure):
            continue
        totals, given_up = tuple(sorted(one.totals.items())), isinstance(one, GivenUp)
        said = ordinal, one.item, one.reason, one.attempts
        notes.append(FailureRow(*said, source=one.source, totals=totals, given_up=given_up))
        if one.message is not None:
            messages[ordinal] = pack(one.message)
    return Failing(plan.batch, notes, messages)
