"""The ledger as a state machine beside a model of plain sets: Hypothesis chooses the calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from fanin.adapters.memory import FixedClock
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.domain.acks import Count, Failure, ItemRange, Receipt, Result
from fanin.domain.batch import Mode, OnDeadline, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.reports import Missing
from fanin.errors import (
    BatchClosed,
    BatchGone,
    FaninError,
    IdempotencyKeyReused,
    InvalidItemId,
    InvalidRequest,
    LimitReached,
)
from tests.stateful.model import ordinal_of, ordinals_of

FORGET_MS = 31_000
"""After so long every process reads a live batch again."""


@dataclass
class Plain:
    """What a batch should be: its items in plain sets.

    Attributes:
        groups: what was added, each with its first ordinal.
        marked: ordinals marked by id, so that a repeat of the id is a duplicate.
        done: all ordinals that are done.
        failed: ordinal → the last reason given.
        acked: how many were counted, in estimated mode.
        totals: their names, with the sums of what items brought first; in estimated mode, each time.
        gone: whether it was removed.
    """

    batch_id: int
    mode: Mode
    limit: int | None
    deadline: int | None
    on_deadline: OnDeadline
    state: State = State.OPEN
    partial: bool = False
    items: int = 0
    groups: list[Group] = field(default_factory=list)
    keys: dict[str, Group] = field(default_factory=dict)
    marked: set[int] = field(default_factory=set)
    done: set[int] = field(default_factory=set)
    failed: dict[int, str] = field(default_factory=dict)
    acked: int = 0
    totals: dict[str, int] = field(default_factory=dict)
    gone: bool = False

    @property
    def finished(self) -> bool:
        return self.acked >= self.items if self.mode is Mode.ESTIMATED else len(self.done) == self.items

    @property
    def whole(self) -> bool:
        """Whether it is complete, so that each item is known to be done."""
        return self.state is State.COMPLETE and not self.partial and self.mode is Mode.EXACT

    def bring(self, values: Mapping[str, int]) -> None:
        for name, value in values.items():
            self.totals[name] += value

    def settle(self) -> None:
        if self.state is State.CLOSED and self.finished:
            self.state = State.COMPLETE


class LedgerMachine(RuleBasedStateMachine):
    """Calls a ledger and its model alike, and compares what they say.

    Calls come from a process that lives on, with what it remembers, or from one that starts with the call.
    """

    world: Callable[[], tuple[Ports, FixedClock, Callable[[], int]]]
    """Makes the ports, their clock, and what tells how many rows were written."""

    batches = Bundle("batches")

    def __init__(self) -> None:
        super().__init__()
        self.ports, self.clock, self.writes = type(self).world()
        self.old = LedgerService(self.ports)
        self.plain: list[Plain] = []

    def service(self, fresh: bool) -> LedgerService:
        return LedgerService(self.ports) if fresh else self.old

    def refused(self, error: type[FaninError], call: Callable[[], object]) -> None:
        """The call must raise exactly this error, and change nothing."""
        before = self.writes()
        try:
            answer = call()
        except FaninError as raised:
            assert type(raised) is error, raised  # noqa: PT017
        else:
            raise AssertionError(f"{answer} instead of {error}")
        if error is not LimitReached:  # which keeps its count of what is pending
            assert self.writes() == before

    # The life of a batch.

    @rule(
        target=batches,
        mode=st.sampled_from((Mode.EXACT, Mode.EXACT, Mode.EXACT, Mode.ESTIMATED)),
        limit=st.sampled_from((None, None, 1, 7)),
        deadline=st.sampled_from((None, None, 5_000)),
        on_deadline=st.sampled_from(OnDeadline),
        totals=st.sampled_from(((), ("rows",), ("rows", "net"))),
        fresh=st.booleans(),
    )
    def open(
        self,
        *,
        mode: Mode,
        limit: int | None,
        deadline: int | None,
        on_deadline: OnDeadline,
        totals: tuple[str, ...],
        fresh: bool,
    ) -> Plain:
        limit = None if mode is Mode.ESTIMATED else limit
        at = None if deadline is None else self.clock.at + deadline
        request = OpenBatch(mode=mode, limit=limit, deadline=at, on_deadline=on_deadline, totals=totals)
        row = self.service(fresh).open(request)
        plain = Plain(row.batch_id, mode, limit, at, on_deadline, totals=dict.fromkeys(totals, 0))
        self.plain.append(plain)
        return plain

    @rule(
        batch=batches,
        count=st.one_of(st.integers(1, 9), st.integers(1, 70)),
        key=st.sampled_from((None, None, "a", "b")),
        fresh=st.booleans(),
    )
    def add(self, batch: Plain, count: int, key: str | None, fresh: bool) -> None:  # noqa: PLR0911
        def call() -> Group:
            return self.service(fresh).add(batch.batch_id, count, key=key)

        if batch.gone:
            return self.refused(BatchGone if key or batch.state.terminal else BatchClosed, call)
        if key in batch.keys:
            if batch.keys[key].upto != count:
                return self.refused(IdempotencyKeyReused, call)
            assert call() == batch.keys[key]
            return None
        if batch.state is not State.OPEN:
            return self.refused(BatchClosed, call)
        if batch.limit is not None and count > batch.limit:
            return self.refused(InvalidRequest, call)
        if batch.limit is not None and batch.items - len(batch.done) + count > batch.limit:
            return self.refused(LimitReached, call)
        group = call()
        assert ordinal_of(group[0]) == (batch.batch_id, batch.items)
        assert group.upto == len(group) == count
        batch.groups.append(group)
        batch.items += count
        if key is not None:
            batch.keys[key] = group
        return None

    @rule(batch=batches, fresh=st.booleans())
    def close(self, batch: Plain, fresh: bool) -> None:
        if batch.gone:
            return self.refused(BatchGone, lambda: self.service(fresh).close(batch.batch_id))
        if batch.state is State.OPEN:
            batch.state = State.CLOSED
            batch.settle()
        assert self.service(fresh).close(batch.batch_id).state is batch.state
        return None

    @rule(batch=batches, fresh=st.booleans())
    def cancel(self, batch: Plain, fresh: bool) -> None:
        if batch.gone:
            return self.refused(BatchGone, lambda: self.service(fresh).cancel(batch.batch_id))
        if not batch.state.terminal:
            batch.state = State.CANCELLED
        assert self.service(fresh).cancel(batch.batch_id).state is batch.state
        self.clock.advance(FORGET_MS)
        return None

    @rule(batch=batches)
    def ring(self, batch: Plain) -> None:
        if batch.deadline is not None:
            self.clock.at = max(self.clock.at, batch.deadline)
        if batch.deadline is not None and not batch.state.terminal:
            batch.partial = batch.on_deadline is OnDeadline.COMPLETE
            batch.state = State.COMPLETE if batch.partial else State.TIMED_OUT
        row = self.service(fresh=True).meet_deadline(batch.batch_id)
        assert row is not None
        assert (row.state, row.partial) == (batch.state, batch.partial)
        self.clock.advance(FORGET_MS)

    @rule(state=st.sampled_from(State), all_of_them=st.booleans())
    def expire(self, state: State, all_of_them: bool) -> None:
        found = [batch for batch in self.plain if batch.state is state and not batch.gone and all_of_them]
        expired = self.service(fresh=True).expire(state, idle_since=self.clock.at + 1 if all_of_them else 0)
        assert (expired.batches, expired.items) == (len(found), sum(batch.items for batch in found))
        for batch in found:
            if state.terminal:
                batch.gone = True
            else:
                batch.state = State.ORPHANED
        self.clock.advance(FORGET_MS)
        self.old = LedgerService(self.ports)  # a process may remember an ended batch for as long as it lives

    # Marking items.

    @rule(data=st.data(), found=st.lists(batches, min_size=1, max_size=3, unique_by=id), fresh=st.booleans())
    def ack(self, data: st.DataObject, found: list[Plain], fresh: bool) -> None:
        named = {batch.batch_id: data.draw(chosen(batch)) for batch in found if batch.groups}
        items = [item for part in named.values() for item in part]
        values = {batch.batch_id: data.draw(brought(batch, named.get(batch.batch_id, ()))) for batch in found}
        results = {item: part for values_of in values.values() for item, part in values_of.items()}

        def call() -> list[Receipt]:
            plain = [item for item in items if item not in results]
            valued = [Result(item, results[item]) for item in items if item in results]
            return self.service(fresh).ack(plain, results=valued)

        if any(batch.gone for batch in found if named.get(batch.batch_id)):
            return self.refused(BatchGone, call)
        receipts = {receipt.batch_id: receipt for receipt in call()}
        assert receipts.keys() == {batch_id for batch_id, part in named.items() if part}
        for batch in found:
            if batch.batch_id in receipts:
                self.told(batch, receipts[batch.batch_id], named[batch.batch_id], values[batch.batch_id])
        return None

    @rule(data=st.data(), batch=batches, reason=st.sampled_from(("", "no", "never")), fresh=st.booleans())
    def fail(self, data: st.DataObject, batch: Plain, reason: str, fresh: bool) -> None:
        items = data.draw(chosen(batch)) if batch.groups else []
        values = data.draw(brought(batch, items))

        def call() -> list[Receipt]:
            return self.service(fresh).fail(
                [Failure(item, reason, totals=values.get(item, {})) for item in items]
            )

        if not items:
            assert call() == []
            return None
        if batch.gone:
            return self.refused(BatchGone, call)
        live, known = not batch.state.terminal, set(batch.done)
        if live:  # unlike an acknowledgement, a failure looks at the bits above the item's own
            batch.marked |= {ordinal_of(item)[1] for item in items} & batch.done
        (receipt,) = call()
        self.told(batch, receipt, items, values)
        for item in items:
            _, ordinal = ordinal_of(item)
            if live and (ordinal not in known or ordinal in batch.failed or batch.mode is Mode.ESTIMATED):
                batch.failed[ordinal] = reason
        return None

    @rule(data=st.data(), batch=batches, fresh=st.booleans())
    def ack_range(self, data: st.DataObject, batch: Plain, fresh: bool) -> None:
        if not batch.groups:
            return None
        group = data.draw(st.sampled_from(batch.groups))
        start = data.draw(st.integers(0, group.upto - 1))
        stop = data.draw(st.one_of(st.none(), st.integers(start + 1, group.upto)))
        span = ItemRange(group.prefix, start, stop)

        def call() -> list[Receipt]:
            return self.service(fresh).ack(ranges=[span])

        if batch.gone:
            return self.refused(BatchGone, call)
        (receipt,) = call()
        _, ordinals = ordinals_of(span)
        if batch.state.terminal and not batch.whole:
            assert (receipt.late, receipt.ranged) == (len(ordinals), 0)
            return None
        assert (receipt.late, receipt.first, receipt.ranged) == (0, 0, len(ordinals))
        if not batch.state.terminal:
            batch.done |= ordinals
            batch.acked += len(ordinals)
            if batch.totals:
                batch.marked |= ordinals
            # Items of whole words are marked above their own bit, and the rest on it: ask the tree which.
            for mark in self.ports.tree.cover(min(ordinals), max(ordinals) + 1, batch.items):
                if mark.level == 0:
                    bits = range(self.ports.tree.width)
                    base = mark.number * self.ports.tree.width
                    batch.marked |= {base + bit for bit in bits if mark.mask >> bit & 1}
            batch.settle()
        self.state_told(batch, receipt)
        return None

    @rule(batch=batches, n=st.integers(1, 20), value=st.integers(-5, 5), fresh=st.booleans())
    def count(self, batch: Plain, n: int, value: int, fresh: bool) -> None:
        values = dict.fromkeys(batch.totals, value)

        def call() -> list[Receipt]:
            return self.service(fresh).ack(counts=[Count(batch.batch_id, n, values)])

        if batch.gone:
            return self.refused(BatchGone, call)
        if batch.mode is Mode.EXACT:
            return self.refused(InvalidRequest, call)
        (receipt,) = call()
        if batch.state.terminal:
            assert (receipt.late, receipt.ranged) == (n, 0)
            return None
        batch.acked += n
        batch.bring(values)
        batch.settle()
        assert (receipt.late, receipt.ranged, receipt.state) == (0, n, batch.state)
        return None

    @rule(data=st.data(), batch=batches, bit=st.integers(0, 49))
    def forge(self, data: st.DataObject, batch: Plain, bit: int) -> None:
        if not batch.groups:
            return
        group = data.draw(st.sampled_from(batch.groups))
        digits = f"{int(group.id.replace('-', ''), 16) ^ 1 << bit:032x}"
        forged = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        items = [group[0], f"{batch.batch_id}:{forged}:0"]
        self.refused(BatchGone if batch.gone else InvalidItemId, lambda: self.old.ack(items))

    @rule(
        batch=batches,
        values=st.sampled_from(({"pages": 1}, {"rows": 2**53 + 1}, {"rows": 0.5}, {"rows": True})),
    )
    def misname(self, batch: Plain, values: dict[str, int]) -> None:
        if batch.groups and not batch.gone:
            item = batch.groups[0][0]
            self.refused(InvalidRequest, lambda: self.old.ack(results=[Result(item, values)]))
            self.refused(InvalidRequest, lambda: self.old.fail([Failure(item, "no", totals=values)]))

    def told(
        self, batch: Plain, receipt: Receipt, items: list[str], values: Mapping[str, Mapping[str, int]]
    ) -> None:
        """Mark items in the model, and compare what the ledger said about them."""
        if batch.state.terminal:
            if batch.whole:
                assert (receipt.first, receipt.late) == (0, 0)
                assert sorted(receipt.duplicates) == sorted(items)
            else:
                assert (receipt.first, receipt.duplicates, receipt.late) == (0, (), len(items))
            return
        if batch.mode is Mode.ESTIMATED:
            batch.acked += len(items)
            for item in items:
                batch.bring(values.get(item, {}))
            assert receipt.ranged == len(items)
        else:
            repeated = []
            for item in items:
                _, ordinal = ordinal_of(item)
                if ordinal in batch.marked:
                    repeated.append(item)
                else:
                    batch.bring(values.get(item, {}))
                batch.marked.add(ordinal)
            batch.done |= batch.marked
            assert sorted(receipt.duplicates) == sorted(repeated)
            assert receipt.first == len(items) - len(repeated)
            assert (receipt.late, receipt.ranged) == (0, 0)
        batch.settle()
        self.state_told(batch, receipt)

    def state_told(self, batch: Plain, receipt: Receipt) -> None:
        assert receipt.complete is (receipt.state is State.COMPLETE)
        assert receipt.complete is (batch.state is State.COMPLETE)

    # Reading.

    @invariant()
    def agree(self) -> None:
        service = LedgerService(self.ports)
        for batch in self.plain[-3:]:
            if batch.gone:
                self.refused(BatchGone, lambda: service.status(batch.batch_id))  # noqa: B023
                continue
            exact, bounds = service.status(batch.batch_id, exact=True), service.status(batch.batch_id)
            row = exact.batch
            assert (row.state, row.items, row.partial) == (batch.state, batch.items, batch.partial)
            assert row.totals == batch.totals
            assert row.totals_exact is (bool(batch.totals) and batch.mode is Mode.EXACT)
            assert not bounds.batch.totals_exact or bounds.batch.totals == batch.totals
            if batch.mode is Mode.ESTIMATED:
                assert bounds.done_min == bounds.done_max == min(batch.acked, batch.items)
                continue
            assert exact.done_min == exact.done_max == len(batch.done)
            assert bounds.done_min <= len(batch.done) <= bounds.done_max
            missing, page = set[int](), Missing((), "0")
            while page.cursor is not None:
                page = service.missing(batch.batch_id, cursor=page.cursor, limit=2)
                for found in page.ranges:
                    missing |= ordinals_of(ItemRange(found.group))[1]
            assert missing == set(range(batch.items)) - batch.done
            listed = {f.ordinal: f.reason for f in service.failures(batch.batch_id, limit=1000).failures}
            assert listed == batch.failed
            verdict = service.verify(batch.batch_id)
            assert (verdict.pending, verdict.disagreements) == (len(missing), ())
            assert verdict.batch.totals == batch.totals


def chosen(batch: Plain) -> st.SearchStrategy[list[str]]:
    """Some items of a batch, some of them twice."""
    item = st.sampled_from(batch.groups).flatmap(lambda g: st.integers(0, g.upto - 1).map(g.__getitem__))
    some = st.lists(item, max_size=8)
    whole = st.sampled_from(batch.groups).map(list)
    return st.one_of(some, whole)


def brought(batch: Plain, items: Sequence[str]) -> st.SearchStrategy[dict[str, dict[str, int]]]:
    """What some of the items of a call bring to the totals of their batch."""
    if not batch.totals or not items:
        return st.just({})
    values = st.dictionaries(st.sampled_from(list(batch.totals)), st.integers(-9, 9))
    return st.dictionaries(st.sampled_from(items), values)
