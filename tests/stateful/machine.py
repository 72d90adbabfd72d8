"""The ledger as a state machine beside a model of plain sets: Hypothesis chooses the calls."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import TypeAlias
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from fanin.adapters.memory import FixedClock
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.domain.batch import Mode, OnDeadline, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.marks import Count, Done, Failure, ItemRange, Malformed, Mark, Receipt
from fanin.domain.reports import Missing
from fanin.domain.tree import positions
from fanin.errors import (
    BatchClosed,
    BatchGone,
    FaninError,
    IdempotencyKeyReused,
    InvalidItemId,
    InvalidRequest,
    LimitReached,
)
from tests.stateful.model import named_by, ordinal_of, ordinals_of

Refusal: TypeAlias = tuple[type[FaninError], type[FaninError]]
"""The error of a mark whose batch is there, and that of one whose batch was removed."""
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

    @rule(data=st.data(), batch=batches, fresh=st.booleans())
    def mark(self, data: st.DataObject, batch: Plain, fresh: bool) -> None:
        self.marking([(mark, batch, None) for mark in data.draw(marks_of(batch))], fresh=fresh)

    @rule(data=st.data(), found=st.lists(batches, min_size=1, max_size=3, unique_by=id), fresh=st.booleans())
    def mark_mixed(self, data: st.DataObject, found: list[Plain], fresh: bool) -> None:
        good = [(mark, batch, None) for batch in found for mark in data.draw(marks_of(batch))]
        bad = [
            (mark, batch, error)
            for batch in found
            if batch.groups
            for mark, error in data.draw(st.lists(faults(batch), max_size=2))
        ]
        self.marking(data.draw(st.permutations([*good, *bad])), fresh=fresh)

    @rule(data=st.data(), batch=batches, fresh=st.booleans())
    def mark_range(self, data: st.DataObject, batch: Plain, fresh: bool) -> None:
        if batch.groups:
            self.marking([(data.draw(spans(batch)), batch, None)], fresh=fresh)

    @rule(batch=batches, n=st.integers(1, 20), value=st.integers(-5, 5), fresh=st.booleans())
    def count(self, batch: Plain, n: int, value: int, fresh: bool) -> None:
        error = (InvalidRequest, BatchGone) if batch.mode is Mode.EXACT else None
        mark = Count(batch.batch_id, n, dict.fromkeys(batch.totals, value))
        self.marking([(mark, batch, error)], fresh=fresh)

    def marking(self, request: Sequence[tuple[Mark, Plain, Refusal | None]], *, fresh: bool) -> None:
        """Mark, and compare every verdict: what is refused is refused alone, and the rest is marked."""
        before = self.writes()
        marked = self.service(fresh).mark([mark for mark, _, _ in request])
        waiting = waiting_in(request)
        # A process that does not know yet that the batch has ended leaves some for a repeat, which tells it.
        left = {place for place in waiting if not request[place][1].state.terminal or place in marked.left}
        assert (marked.left.keys(), marked.unknown) == (left, {})
        shares: dict[int, list[Mark]] = {}
        refused: dict[int, type[FaninError]] = {}
        for place, (mark, batch, error) in enumerate(request):
            if error or batch.gone:
                refused[place] = (error or (InvalidRequest, BatchGone))[batch.gone]
            elif place not in left:
                shares.setdefault(batch.batch_id, []).append(mark)
        assert {place: type(error) for place, error in marked.refused.items()} == refused
        receipts = {receipt.batch_id: receipt for receipt in marked.receipts}
        assert receipts.keys() == shares.keys()
        for batch in self.plain:
            if batch.batch_id in shares:
                self.told(batch, receipts[batch.batch_id], shares[batch.batch_id])
        if not shares:
            assert self.writes() == before

    def told(self, batch: Plain, receipt: Receipt, marks: Sequence[Mark]) -> None:
        """Mark items in the model, and compare what the ledger said about them."""
        ranged = sum(sizes_of(mark) for mark in marks if isinstance(mark, ItemRange | Count))
        items = [item_of(mark) for mark in marks if not isinstance(mark, ItemRange | Count)]
        expected = Receipt(batch.batch_id, receipt.user_key, receipt.state, receipt.complete)
        if batch.whole:
            expected = replace(expected, duplicates=tuple(items), ranged=ranged)
        elif batch.state.terminal:
            expected = replace(expected, late=len(items) + ranged)
        elif batch.mode is Mode.ESTIMATED:
            self.counted(batch, marks)
            failed = sum(isinstance(mark, Failure) for mark in marks)
            expected = replace(expected, failed=failed, ranged=len(items) + ranged)
        else:
            firsts, failed = self.marked(batch, marks)
            repeated = Counter(items) - Counter(firsts)
            assert Counter(receipt.duplicates) == repeated
            first = len(firsts)
            expected = replace(
                expected, first=first, failed=failed, ranged=ranged, duplicates=receipt.duplicates
            )
        assert receipt == expected
        batch.settle()
        if not batch.state.terminal or batch.state is State.COMPLETE:
            self.state_told(batch, receipt)

    def counted(self, batch: Plain, marks: Sequence[Mark]) -> None:
        for mark in marks:
            batch.acked += sizes_of(mark)
            if isinstance(mark, Done | Failure | Count):
                batch.bring(mark.totals)
            if isinstance(mark, Failure):
                batch.failed[ordinal_of(mark.item)[1]] = mark.reason

    def marked(self, batch: Plain, marks: Sequence[Mark]) -> tuple[list[str], int]:
        """Mark items of a live batch: the first mark of each decides.

        Returns:
            The items that are first, and how many of them failed.
        """
        known, failures = set(batch.done), set(batch.failed)
        seen, ranged = set[int](), set[int]()
        firsts, failed = list[str](), 0
        for mark in marks:
            _, ordinals = named_by(mark)
            if isinstance(mark, ItemRange):
                ranged |= ordinals
                continue
            (ordinal,) = ordinals
            if ordinal in seen | ranged:
                continue
            seen.add(ordinal)
            fails = isinstance(mark, Failure)
            # Unlike other marks, a failure looks at the bits above the item's own.
            if ordinal not in (batch.marked | known if fails else batch.marked):
                firsts.append(item_of(mark))
                failed += fails
                batch.bring(mark.totals if isinstance(mark, Done | Failure) else {})
            if isinstance(mark, Failure) and ordinal not in known - failures:
                batch.failed.setdefault(ordinal, mark.reason)
            batch.marked.add(ordinal)
        for mark in marks:
            if isinstance(mark, ItemRange):
                self.cover(batch, ordinals_of(mark)[1])
        batch.done |= batch.marked | ranged
        return firsts, failed

    def cover(self, batch: Plain, ordinals: set[int]) -> None:
        """Items of whole words are marked above their own bit, and the rest on it: ask the tree which."""
        if batch.totals:
            batch.marked |= ordinals
        for bits in self.ports.tree.cover(min(ordinals), max(ordinals) + 1, batch.items):
            if bits.level == 0:
                base = bits.number * self.ports.tree.width
                batch.marked |= {base + bit for bit in positions(bits.mask)}

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
                    missing |= ordinals_of(found.items)[1]
            assert missing == set(range(batch.items)) - batch.done
            listed = {f.ordinal: f.reason for f in service.failures(batch.batch_id, limit=1000).failures}
            assert listed == batch.failed
            verdict = service.verify(batch.batch_id)
            assert (verdict.pending, verdict.disagreements) == (len(missing), ())
            assert verdict.batch.totals == batch.totals


def waiting_in(request: Sequence[tuple[Mark, Plain, Refusal | None]]) -> set[int]:
    """The places of marks that are left for a repeat of the request.

    These are ranges behind a failure of one of their items, and marks of their other items behind them.
    """
    waiting, failing, decided = set[int](), set[tuple[int, int]](), dict[tuple[int, int], int]()
    for place, (mark, batch, error) in enumerate(request):
        if error or batch.gone or batch.mode is Mode.ESTIMATED:
            continue
        named = {(batch.batch_id, ordinal) for ordinal in named_by(mark)[1]}
        if isinstance(mark, ItemRange):
            if named & failing:
                waiting.add(place)
        else:
            (item,) = named
            if decided.get(item, place) in waiting:
                waiting.add(place)
            elif item not in decided and isinstance(mark, Failure):
                failing.add(item)
        for item in named:
            decided.setdefault(item, place)
    return waiting


def chosen(batch: Plain) -> st.SearchStrategy[list[str]]:
    """Some items of a batch, some of them twice."""
    item = st.sampled_from(batch.groups).flatmap(lambda g: st.integers(0, g.upto - 1).map(g.__getitem__))
    some = st.lists(item, max_size=8)
    whole = st.sampled_from(batch.groups).map(list)
    return st.one_of(some, whole)


@st.composite
def spans(draw: st.DrawFn, batch: Plain) -> ItemRange:
    group = draw(st.sampled_from(batch.groups))
    start = draw(st.integers(0, group.upto - 1))
    return ItemRange(group.prefix, start, draw(st.one_of(st.none(), st.integers(start + 1, group.upto))))


@st.composite
def marks_of(draw: st.DrawFn, batch: Plain) -> list[Mark]:
    """What became of some items of a batch: done, with values or without, or failed; and of ranges."""
    if not batch.groups:
        return []
    values = st.dictionaries(st.sampled_from(list(batch.totals) or ["none"]), st.integers(-9, 9))
    kinds = draw(
        st.lists(
            st.tuples(
                st.sampled_from(("id", "id", "done", "failure")),
                values if batch.totals else st.just({}),
                st.sampled_from(("", "no", "never")),
            ),
            min_size=1,
            max_size=4,
        )
    )
    marks: list[Mark] = []
    for item, (kind, totals, reason) in zip(draw(chosen(batch)), cycle(kinds), strict=False):
        match kind:
            case "id":
                marks.append(item)
            case "done":
                marks.append(Done(item, totals))
            case _:
                marks.append(Failure(item, reason, totals=totals))
    for span in draw(st.lists(spans(batch), max_size=1)):
        marks.insert(draw(st.integers(0, len(marks))), span)
    return marks


def faults(batch: Plain) -> st.SearchStrategy[tuple[Mark, Refusal]]:
    """Marks that a batch cannot take, and why."""

    def forged(group: Group, bit: int) -> str:
        return f"{batch.batch_id}:{UUID(int=UUID(group.id).int ^ 1 << bit)}:0"

    group = batch.groups[0]
    foreign = st.builds(forged, st.sampled_from(batch.groups), st.integers(0, 49))
    values = ({"pages": 1}, {"rows": 2**53 + 1}, {"rows": 0.5}, {"rows": True})
    unread: list[tuple[Mark, Refusal]] = [
        ("nonsense", (InvalidItemId, InvalidItemId)),
        (group.prefix + f":{group.upto}", (InvalidItemId, InvalidItemId)),
        (ItemRange(group.prefix, 0, group.upto + 1), (InvalidRequest, InvalidRequest)),
        (Malformed(InvalidRequest("no mark")), (InvalidRequest, InvalidRequest)),
        *(
            (kind(group[0], totals=one), (InvalidRequest, BatchGone if "pages" in one else InvalidRequest))
            for kind in (Done, Failure)
            for one in values
        ),
    ]
    return st.one_of(
        st.one_of(foreign, foreign.map(Done), foreign.map(Failure)).map(
            lambda mark: (mark, (InvalidItemId, BatchGone))
        ),
        st.sampled_from(unread),
    )


def item_of(mark: Mark) -> str:
    assert isinstance(mark, str | Done | Failure)
    return mark if isinstance(mark, str) else mark.item


def sizes_of(mark: Mark) -> int:
    """How many items a mark is for."""
    return mark.n if isinstance(mark, Count) else len(named_by(mark)[1])
