"""Acknowledging items: parse the request, plan the bits, clear and settle them, and say who was first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from fanin.app.ledger import ack_receipts
from fanin.app.ledger.ack_receipts import Plan
from fanin.app.ledger.ack_request import Share, parse_ack, parse_failures
from fanin.app.ledger.issued import check_issued
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.settle import Settler
from fanin.app.ports import Ports
from fanin.app.ports.words import WordKey
from fanin.domain.acks import Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, Mode
from fanin.errors import FaninError, InvalidRequest, OutcomeUnknown


class Acks:
    """The acknowledging side of the ledger.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
        settler: clears bits and settles what they finish.
    """

    def __init__(self, ports: Ports, known: KnownBatches, settler: Settler) -> None:
        self._ports = ports
        self._known = known
        self._settler = settler

    def ack(
        self, items: Sequence[str], ranges: Sequence[ItemRange], counts: Sequence[Count]
    ) -> list[Receipt]:
        shares = parse_ack(items, ranges, counts)
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
        for share in shares.values():
            batch = batches[share.batch_id]
            if not batch.state.terminal:
                self._ports.parts.put_failures(share.batch_id, share.notes, expires_at=batch.expires_at)
        plans = self._without_covered(self._plan(shares, batches), batches)
        failing = {
            WordKey(plan.share.batch_id, 0, number)
            for plan in plans.values()
            for number in plan.named.keys() - plan.covered
        }
        return self._clear(shares, batches, plans, failing=failing)

    def _check(self, shares: Mapping[int, Share]) -> Mapping[int, Batch]:
        """Read the batches, and compare every block with its batch's salt and size.

        Raises:
            InvalidItemId: the service never issued such an id.
        """
        batches = self._known.reaching({share.batch_id: share.stop for share in shares.values()})
        for share in shares.values():
            for block in share.blocks:
                check_issued(block, batches[share.batch_id])
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
        """Clear the bits of all plans together, settle finished words, return one receipt a share."""
        marks = {key: mask for plan in plans.values() for key, mask in plan.marks.items()}
        outcomes = self._settler.settle(marks, failed=failing) if marks else {}
        for batch_id in plans:  # before the counts: once one is made, no failure may look like none was
            self._known.touch(self._known.cached(batch_id) or batches[batch_id])
        receipts, counted = [], set[int]()
        for batch_id, share in shares.items():
            if batch_id in plans:
                row = self._known.cached(batch_id) or batches[batch_id]
                receipts.append(ack_receipts.receipt(plans[batch_id], row, outcomes, self._ports.tree))
            elif batches[batch_id].state.terminal:
                receipts.append(ack_receipts.ended(share, batches[batch_id]))
            else:
                receipts.append(self._count(share, batches[batch_id], counted))
        return receipts

    def _count(self, share: Share, batch: Batch, counted: set[int]) -> Receipt:
        """Count the share of an estimated batch, which has no bits, and note it in ``counted``.

        Raises:
            OutcomeUnknown: it failed after this or another share was counted; a repeat would count it again.
        """
        try:
            activity = self._known.activity(batch)
            row = self._ports.batches.count(batch.batch_id, share.total, activity=activity)
            if row is None:
                return ack_receipts.ended(share, self._known.current(batch.batch_id))
            counted.add(batch.batch_id)
            return ack_receipts.counted(share, self._settler.finish(self._known.remember(row)))
        except FaninError as error:
            if not counted:
                raise
            raise OutcomeUnknown(
                f"the call failed ({error}) after items of the batches {sorted(counted)} were counted;"
                " repeating it would count them again, so read the status of its batches first"
            ) from error
