"""Acknowledging items: parse the request, plan the bits, clear and settle them, and say who was first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from fanin.app.failures.notes import Failing, FailureNotes
from fanin.app.ledger import ack_receipts
from fanin.app.ledger.ack_receipts import Plan
from fanin.app.ledger.ack_request import Share, parse_ack, parse_failures
from fanin.app.ledger.held import Held
from fanin.app.ledger.issued import check_issued
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.settle import Settler
from fanin.app.ledger.tolerance import Tolerating
from fanin.app.ledger.values import check_totals, counted_sums
from fanin.app.ports import Ports
from fanin.app.ports.words import Outcome, WordKey
from fanin.domain.acks import Count, Failure, ItemRange, Receipt, Result, join
from fanin.domain.batch import Batch, Mode
from fanin.domain.totals import MAX_VALUE
from fanin.errors import (
    FaninError,
    InvalidRequest,
    OutcomeUnknown,
    PartlyMarked,
    ServiceUnavailable,
    Throttled,
)


@dataclass
class _Answer:
    """What a call did, and what it left.

    Attributes:
        receipts: of what is marked.
        rest: shares that are left to do.
        errors: why they are.
        counted: estimated batches that were counted up.
        doubtful: shares that an estimated batch may have counted.
        unrepeatable: why the whole call must not be repeated.
    """

    receipts: list[Receipt] = field(default_factory=list)
    rest: list[Share] = field(default_factory=list)
    errors: list[FaninError] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    doubtful: list[Share] = field(default_factory=list)
    unrepeatable: OutcomeUnknown | None = None

    def leave(self, share: Share, error: FaninError) -> None:
        self.rest.append(share)
        self.errors.append(error)

    def result(self) -> list[Receipt]:
        """The receipts, if nothing was left.

        Raises:
            PartlyMarked: something was left.
            Throttled, ServiceUnavailable: everything was left; some of it may be marked all the same.
            OutcomeUnknown: a count may have been made, or was made before another one failed.
        """
        if self.unrepeatable is not None:
            raise OutcomeUnknown(
                str(self.unrepeatable),
                receipts=self.receipts,
                unknown=join(share.acks for share in self.doubtful),
                rest=join(share.acks for share in self.rest),
            ) from self.unrepeatable
        if not self.rest:
            return self.receipts
        if not self.receipts:
            raise self.errors[0]
        raise PartlyMarked(
            f"some items are marked, others are not yet: {self.errors[0]}; repeat the call with those",
            receipts=self.receipts,
            rest=join(share.acks for share in self.rest),
            retry_after=1,
        )


class Acks:
    """The acknowledging side of the ledger.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
        settler: clears bits and settles what they finish.
        tolerating: ends batches in which too much fails.
    """

    def __init__(self, ports: Ports, known: KnownBatches, settler: Settler, tolerating: Tolerating) -> None:
        self._ports = ports
        self._known = known
        self._settler = settler
        self._notes = FailureNotes(ports)
        self._held = Held(ports)
        self._tolerating = tolerating

    def ack(
        self,
        items: Sequence[str],
        ranges: Sequence[ItemRange],
        counts: Sequence[Count],
        results: Sequence[Result] = (),
        *,
        most: int = MAX_VALUE,
        exact_values: bool = True,
    ) -> list[Receipt]:
        shares = parse_ack(items, ranges, counts, results, most=most)
        if not exact_values:
            shares = {batch_id: replace(share, exact_values=False) for batch_id, share in shares.items()}
        batches = self._check(shares)
        for share in shares.values():
            if share.counted and batches[share.batch_id].mode is Mode.EXACT:
                raise InvalidRequest(
                    f"batch {share.batch_id} is exact: acknowledge its items by their ids, not by a count"
                )
        plans = self._plan(shares, batches)
        return self._clear(shares, batches, plans)

    def fail(self, failures: Sequence[Failure]) -> list[Receipt]:
        shares = parse_failures(failures)
        # A remembered row may have fewer levels than the tree in which a range was marked.
        self._known.refresh(shares)
        batches = self._check(shares)
        self._notes.write(
            [
                Failing(batches[share.batch_id], share.notes, share.messages)
                for share in shares.values()
                if not batches[share.batch_id].state.terminal
            ]
        )
        plans = self._without_covered(self._plan(shares, batches), batches)
        failing = {
            WordKey(plan.share.batch_id, 0, number)
            for plan in plans.values()
            for number in plan.named.keys() - plan.covered
        }
        try:
            receipts = self._clear(shares, batches, plans, failing=failing)
        except PartlyMarked as partly:
            self._tolerating.note(partly.receipts, batches)
            raise
        return self._tolerating.note(receipts, batches)

    def _check(self, shares: Mapping[int, Share]) -> Mapping[int, Batch]:
        """Read the batches, and compare every block with its batch's salt and size.

        Raises:
            InvalidItemId: the service never issued such an id.
            InvalidRequest: an item has a value for a total that its batch does not have.
            RequestTooLarge: ranges of a batch with totals have too many items.
        """
        batches = self._known.reaching({share.batch_id: share.stop for share in shares.values()})
        for share in shares.values():
            for block in share.blocks:
                check_issued(block, batches[share.batch_id])
        check_totals(shares.values(), batches)
        return batches

    def _plan(self, shares: Mapping[int, Share], batches: Mapping[int, Batch]) -> Mapping[int, Plan]:
        """Make plans for the live, exact batches; shares of other batches are not marked."""
        return {
            batch_id: ack_receipts.plan(share, batches[batch_id], self._ports.tree)
            for batch_id, share in shares.items()
            if batches[batch_id].mode is Mode.EXACT and not batches[batch_id].state.terminal
        }

    def _without_covered(self, plans: Mapping[int, Plan], batches: Mapping[int, Batch]) -> Mapping[int, Plan]:
        """Find the words that a range has marked as done higher up in the tree.

        An acknowledgement does not need these reads. But an item that succeeded must not be listed as
        failed, so the words above an item are read before its failure is written.
        """
        tree = self._ports.tree
        paths = {
            (batch_id, number): [
                (WordKey(batch_id, above.level, above.number), above.mask)
                for above in tree.ancestors(number, batches[batch_id].items)
            ]
            for batch_id, plan in plans.items()
            for number in plan.named
        }
        words = self._ports.words.read({key for path in paths.values() for key, _ in path})
        covered = {
            word
            for word, path in paths.items()
            if any(not words.get(key, tree.full) & bit for key, bit in path)
        }
        return {
            batch_id: replace(plan, covered=frozenset(n for n in plan.named if (batch_id, n) in covered))
            for batch_id, plan in plans.items()
        }

    def _clear(
        self,
        shares: Mapping[int, Share],
        batches: Mapping[int, Batch],
        plans: Mapping[int, Plan],
        *,
        failing: Collection[WordKey] = (),
    ) -> list[Receipt]:
        """Clear the bits of all plans together, settle finished words, return one receipt a share.

        Failing items of a batch that holds them are looked at, and stay pending.

        Raises:
            PartlyMarked: the store was overloaded, or the time was up, when some were marked.
            Throttled, ServiceUnavailable: the same, when none was marked for certain; some words may be, if
                what lies above them was not written.
            OutcomeUnknown: an estimated batch may have counted its share, or did before another call failed.
        """
        holds = {
            batch_id: plan for batch_id, plan in plans.items() if plan.share.notes and batches[batch_id].holds
        }
        held = self._held.found(holds.values()) if holds else {}
        marking = {batch_id: plan for batch_id, plan in plans.items() if batch_id not in holds}
        outcomes = {**self._settle(marking, failing), **held}
        answer = _Answer()
        for batch_id, plan in plans.items():
            self._conclude(plan, batches[batch_id], outcomes, answer)
        for batch_id, share in shares.items():
            if batch_id in plans:
                continue
            if batches[batch_id].state.terminal:
                answer.receipts.append(ack_receipts.ended(share, batches[batch_id]))
            elif answer.errors:  # the caller repeats what is left, and a count must not be repeated
                answer.leave(share, answer.errors[0])
            else:
                self._count(share, batches[batch_id], answer)
        order = {batch_id: place for place, batch_id in enumerate(shares)}
        answer.receipts.sort(key=lambda receipt: order[receipt.batch_id])
        return answer.result()

    def _settle(self, plans: Mapping[int, Plan], failing: Collection[WordKey]) -> Mapping[WordKey, Outcome]:
        """Settle all plans together; if a batch row is overloaded, each on its own."""
        marks = {key: mask for plan in plans.values() for key, mask in plan.marks.items()}
        if not marks:
            return {}
        try:
            brought = {key: values for plan in plans.values() for key, values in plan.brought.items()}
            return self._settler.try_to_settle(marks, failed=failing, brought=brought)
        except (Throttled, ServiceUnavailable) as error:
            if len(plans) == 1:
                return dict.fromkeys(marks, error)
            alone = [self._settle({batch_id: plan}, failing) for batch_id, plan in plans.items()]
            return {key: outcome for outcomes in alone for key, outcome in outcomes.items()}

    def _conclude(
        self, plan: Plan, batch: Batch, outcomes: Mapping[WordKey, Outcome], answer: _Answer
    ) -> None:
        """Answer for one plan, whose words were written as far as they could be."""
        error = next((o for key in plan.marks if isinstance(o := outcomes[key], FaninError)), None)
        share = plan.share
        if error is not None:
            plan, rest = ack_receipts.split(plan, batch, outcomes, self._ports.tree)
            answer.leave(rest, error)
            if not plan.share.total:
                return
        row = self._known.cached(batch.batch_id) or batch
        try:
            self._known.touch(row)
        except (Throttled, ServiceUnavailable) as busy:  # the repeat records the activity
            if error is None:
                answer.leave(share, busy)
                return
        receipt = ack_receipts.receipt(plan, row, outcomes, self._ports.tree)
        if share.notes and batch.holds:
            receipt = replace(receipt, first=0, held=receipt.first)
        answer.receipts.append(receipt)

    def _count(self, share: Share, batch: Batch, answer: _Answer) -> None:
        """Count the share of an estimated batch, which has no bits.

        Raises:
            FaninError: it failed before any share was counted.
        """
        try:
            activity = self._known.activity(batch)
            sums = counted_sums(share, batch)
            row = self._ports.batches.count(batch.batch_id, share.total, activity=activity, sums=sums)
            if row is None:
                answer.receipts.append(ack_receipts.ended(share, self._known.current(batch.batch_id)))
                return
        except Throttled as error:
            answer.leave(share, error)
            return
        except OutcomeUnknown as lost:
            answer.doubtful.append(share)
            answer.errors.append(lost)
            answer.unrepeatable = lost
            return
        except FaninError as error:
            if not answer.counted:
                raise
            answer.leave(share, error)
            answer.unrepeatable = OutcomeUnknown(
                f"the call failed ({error}) after items of the batches {answer.counted} were counted;"
                " repeating it would count them again, so read the status of its batches first"
            )
            return
        answer.counted.append(batch.batch_id)
        row = self._known.remember(row)
        with suppress(Throttled, ServiceUnavailable):  # it is counted; the reaper completes the batch
            row = self._settler.finish(row)
        answer.receipts.append(ack_receipts.counted(share, row))
