"""What must be true of a ledger, in plain sets, and checked at every access to a store.

An item is *begun* once a call that marks it has been made, *sure* once such a call has answered (and not
that it came late). Between the two nobody can know. The words in memory are read here bit by bit, without
the code under test.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ledger.reaper import EARLY_MS
from fanin.app.ports.words import WordKey
from fanin.domain import ids
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.ids import Group
from fanin.domain.marks import Done, Failure, ItemRange, Mark, Receipt
from fanin.domain.tree import positions
from tests.stateful import raw_parts


class Broken(AssertionError):
    """An invariant does not hold."""


def require(condition: object, message: str) -> None:
    if not condition:
        raise Broken(message)


class BatchModel:
    """What is known of one batch's items.

    Attributes:
        groups: what was added.
        keys: idempotency key → what it gave.
        begun: ordinals that a call has begun to mark.
        ranged: those of them that were in a range, so that a bit high in the tree may stand for them.
        sure: ordinals whose call has answered.
        named: those of them that were named by id.
        silent: ordinals named in a call whose answer nobody saw.
        late: ordinals that a call found too late to mark.
        firsts: ordinal → how often a call was told that it was first.
        failing: ordinals that a call has begun to fail.
        first_failed: ordinals whose first mark was a failure, as its caller was told.
        first_acked: the same for acknowledgements.
    """

    def __init__(self) -> None:
        self.groups: set[ids.Block] = set()
        self.keys: dict[str, Group] = {}
        self.begun: set[int] = set()
        self.ranged: set[int] = set()
        self.sure: set[int] = set()
        self.named: set[int] = set()
        self.silent: set[int] = set()
        self.late: set[int] = set()
        self.firsts: Counter[int] = Counter()
        self.failing: set[int] = set()
        self.first_failed: set[int] = set()
        self.first_acked: set[int] = set()


class Model:
    """Watches a world in memory.

    Attributes:
        batches: batch id → what is known of it.
        rows: batch id → the row after its latest change.
    """

    def __init__(self) -> None:
        self.batches: defaultdict[int, BatchModel] = defaultdict(BatchModel)
        self.rows: dict[int, Batch] = {}
        self._seen = 0
        self._memory = Memory()

    def watch(self, memory: Memory) -> None:
        self._memory = memory

    def look(self) -> None:
        """Check what has changed since the last look.

        Raises:
            Broken: an invariant does not hold.
        """
        changes = self._memory.batches.changes
        while self._seen < len(changes):
            old, new = changes[self._seen]
            self._seen += 1
            self.rows[new.batch_id] = new
            if old is not None:
                self._check(old, new)

    def marked(self, batch: Batch) -> set[int]:
        """Ordinals whose bit is clear, or that a bit above clears, read from the raw words."""
        words, width = self._memory.words._words, self._memory.tree.width
        found = set()
        for ordinal in range(batch.items):
            at, below, level = ordinal, batch.items, 0
            while level == 0 or below > 1:
                at, bit = divmod(at, width)
                if not words.get(WordKey(batch.batch_id, level, at), -1) >> bit & 1:
                    found.add(ordinal)
                    break
                below, level = -(-below // width), level + 1
        return found

    def failed(self, batch: Batch) -> set[int]:
        """Ordinals of the items that were marked as failed, read from the raw words."""
        width = self._memory.tree.width
        return {
            key.number * width + bit
            for key, mask in self._memory.words._failed.items()
            if key.batch_id == batch.batch_id
            for bit in positions(mask)
        }

    def noted(self, batch: Batch) -> int:
        """How many items have a note of a failure, whether that or another mark has won."""
        return len(raw_parts.notes(self._memory, batch.batch_id))

    def _written(self, batch: Batch) -> set[int]:
        """Ordinals whose own bit is clear, or that a range may have marked."""
        words, width = self._memory.words._words, self._memory.tree.width
        own = {
            ordinal
            for ordinal in range(batch.items)
            if not words.get(WordKey(batch.batch_id, 0, ordinal // width), -1) >> ordinal % width & 1
        }
        return own | self.batches[batch.batch_id].ranged

    def _check(self, old: Batch, new: Batch) -> None:
        clock = self._memory.clock
        assert isinstance(clock, FixedClock)
        name = f"batch {new.batch_id}"
        require(new.items >= old.items, f"{name} lost items")
        if new.items > old.items:
            require(old.state is State.OPEN, f"{name} took items while {old.state}")
            if new.limit is not None:
                pending = new.items - len(self.marked(new))
                require(pending <= new.limit, f"{name} has {pending} pending of at most {new.limit}")
        self._check_told(name, old, new)
        if old.state.terminal:
            require(new.state is old.state, f"{name} went from {old.state} to {new.state}")
            return
        if old.draining and new.state is State.CLOSED:
            left = set(range(new.items)) - self._written(new)
            require(not left, f"{name} was closed as drained, and {sorted(left)} could add more")
        if new.state is State.COMPLETE and not new.partial and new.mode is Mode.EXACT:
            require(old.state is State.CLOSED, f"{name} completed while {old.state}")
            missing = set(range(new.items)) - self._written(new)
            require(not missing, f"{name} completed early: {sorted(missing)} are pending")
        if new.state is State.TIMED_OUT or new.partial:
            due = new.deadline is not None and new.deadline - EARLY_MS <= clock.at
            require(due, f"{name} ended {new.state} before its deadline")
        if new.state is State.ORPHANED:
            require(old.idle_at <= clock.at, f"{name} was orphaned while active, {old.state}")

    def _check_told(self, name: str, old: Batch, new: Batch) -> None:
        require(new.told == old.told or not old.state.terminal, f"{name} had ended: {new.told}")
        failing = new.failing_at and not old.failing_at
        require(not failing or new.holds or self.failed(new), f"{name} is failing, and nothing failed")
        if new.milestone > old.milestone:
            enough = len(self.marked(new)) * 100 >= new.milestone * new.items
            require(enough and new.state is State.CLOSED, f"{name} has not come to {new.milestone} %")

    # What callers do and are told.

    def issued(self, group: Group, key: str | None) -> None:
        """Items were added: nobody else may have them, unless under the same key."""
        block = ids.parse_prefix(group.prefix)
        model = self.batches[block.batch_id]
        if key is not None:
            known = model.keys.setdefault(key, group)
            require(known == group, f"key {key} gave {group}, and {known} before")
        require(group.upto == block.size, f"{group} is not {block}")
        for other in model.groups - {block}:
            apart = block.stop <= other.first or other.stop <= block.first
            require(apart, f"{block} overlaps {other}")
        model.groups.add(block)

    def begin(self, marks: Iterable[Mark]) -> None:
        for mark in marks:
            batch_id, ordinals = named_by(mark)
            model = self.batches[batch_id]
            model.begun |= ordinals
            if isinstance(mark, ItemRange):
                model.ranged |= ordinals
            if isinstance(mark, Failure):
                model.failing |= ordinals

    def lost(self, marks: Iterable[Mark]) -> None:
        """The answer of a call with these was lost."""
        for mark in marks:
            batch_id, ordinals = named_by(mark)
            if not isinstance(mark, ItemRange):
                self.batches[batch_id].silent |= ordinals

    def settled(self, items: Iterable[str]) -> None:
        """A call that marked these has come to its end, whatever its answer."""
        for item in items:
            batch_id, ordinal = ordinal_of(item)
            model = self.batches[batch_id]
            (model.late if self.rows[batch_id].state.terminal else model.sure).add(ordinal)

    def answered(self, receipts: Sequence[Receipt], marks: Sequence[Mark]) -> None:
        """A request has settled these, in this order; its receipts must add up to them."""
        shares: defaultdict[int, list[tuple[Mark, set[int]]]] = defaultdict(list)
        for mark in marks:
            batch_id, ordinals = named_by(mark)
            shares[batch_id].append((mark, ordinals))
        by_batch = {receipt.batch_id: receipt for receipt in receipts}
        require(by_batch.keys() == shares.keys(), f"{receipts} are not for {list(shares)}")
        for batch_id, share in shares.items():
            self._receipt(by_batch[batch_id], share)

    def _receipt(self, receipt: Receipt, share: Sequence[tuple[Mark, set[int]]]) -> None:
        model = self.batches[receipt.batch_id]
        told = receipt.first + len(receipt.duplicates) + receipt.ranged + receipt.late + receipt.held
        size = sum(len(ordinals) for _, ordinals in share)
        require(told == size, f"{receipt} does not add up to {size}")
        if receipt.late:
            require(receipt.late == size, f"some of {receipt} are late, and others are not")
            model.late |= {ordinal for _, ordinals in share for ordinal in ordinals}
            return
        duplicates = Counter(ordinal_of(item)[1] for item in receipt.duplicates)
        deciding: dict[int, Mark] = {}
        named = Counter[int]()
        for mark, ordinals in share:
            model.sure |= ordinals
            deciding = dict.fromkeys(ordinals, mark) | deciding
            if not isinstance(mark, ItemRange):
                model.named |= ordinals
                named.update(ordinals)
        firsts = named - duplicates
        require(not duplicates - named, f"{receipt} tells of others than {named}")
        for ordinal in firsts.elements():
            model.firsts[ordinal] += 1
            require(model.firsts[ordinal] == 1, f"item {ordinal} was marked first twice")
            require(not isinstance(deciding[ordinal], ItemRange), f"{ordinal} was first behind its range")
        failed = {ordinal for ordinal in firsts if isinstance(deciding[ordinal], Failure)}
        require(receipt.failed == len(failed), f"{receipt}, but {failed} failed first")
        model.first_failed |= failed
        model.first_acked |= firsts.keys() - failed


def named_by(mark: Mark) -> tuple[int, set[int]]:
    """The batch and the ordinals of the items of a mark that has ids."""
    if isinstance(mark, ItemRange):
        return ordinals_of(mark)
    assert isinstance(mark, str | Done | Failure)
    batch_id, ordinal = ordinal_of(mark if isinstance(mark, str) else mark.item)
    return batch_id, {ordinal}


@lru_cache(maxsize=4_096)
def ordinal_of(item: str) -> tuple[int, int]:
    prefix, _, index = item.rpartition(":")
    block = ids.parse_prefix(prefix)
    return block.batch_id, block.first + int(index)


def ordinals_of(span: ItemRange) -> tuple[int, set[int]]:
    block = ids.parse_prefix(span.group)
    stop = block.size if span.stop is None else span.stop
    return block.batch_id, set(range(block.first + span.start, block.first + stop))
