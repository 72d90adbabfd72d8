"""Opening a batch: draft its row, write what belongs to it, commit the row."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from fanin.app.ledger.known_batches import check_issued
from fanin.app.ledger.reservation import Reservation, draw_id, replayed
from fanin.app.ledger.settle import Settling
from fanin.app.ledger.walk import count_totals
from fanin.app.ports.batches import ItemPlace
from fanin.app.targets.records import checked_targets, put_targets
from fanin.domain import ids, limits
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import (
    MAX_MILESTONES,
    RETENTION,
    WHOLE,
    Batch,
    ChangeLimits,
    ChildFailures,
    Kind,
    Mode,
    OnDeadline,
    OnFailure,
    OpenBatch,
    State,
)
from fanin.domain.failures import Keep
from fanin.domain.targets import When
from fanin.domain.totals import check_names
from fanin.errors import InvalidRequest, ItemHasChild, Throttled
from fanin.wire.batches import OPEN_BATCH
from fanin.wire.json_types import encode_time

TRIES = 5
"""Drafts of a batch; at 4,096 ids a millisecond, more than a few collisions mean that something is wrong."""


class Opening(Settling):
    """Opens batches, in two steps.

    ``draft`` gives the row that is about to be written, and ``commit`` writes it: from then on the batch
    exists, together with everything that belongs to it. If its id is taken, it is drafted anew.
    """

    def open(self, request: OpenBatch, *, key: str | None = None, caller: Principal | None = None) -> Batch:
        if key is None:
            return self.open_prepared(request, None, caller)
        mine, asked = IdempotencyKey.of(key, caller), OPEN_BATCH.encode(request)
        reservation = Reservation(self.ports, mine, asked, self._lifetime(request))
        batch = self.find_reserved(reservation)
        if batch is None:
            batch = self.open_prepared(request, reservation, caller)
            reservation.keep()
        return self._known.unexpired(self._known.remember(batch))

    def find_reserved(self, reservation: Reservation) -> Batch | None:
        """Find the batch that an earlier call with the key opened, and do what that call left undone.

        Returns:
            Its row; None if there is none yet.

        Raises:
            IdempotencyKeyReused: the key was used for another request.
            BatchGone: the batch was removed.
        """
        batch = reservation.batch()
        replayed.set(batch is not None)
        if batch is not None and not reservation.kept:
            batch = self._opened(batch)
            reservation.keep()
        return batch

    def open_prepared(
        self,
        request: OpenBatch,
        reservation: Reservation | None,
        caller: Principal | None,
        prepare: Callable[[Batch], Batch | None] = lambda drafted: drafted,
    ) -> Batch:
        """Open a batch, in two steps: its row is drafted, and written once it is prepared.

        Args:
            request: what to open.
            reservation: of an idempotency key.
            caller: who opens it; None if that is not known.
            prepare: writes the records of a pattern under the draft's id, and may change the draft; it gives
                None if another batch has the id.
        """
        targets = checked_targets(self.ports, request.on_end)
        for tried in range(TRIES):
            drafted = self.draft(request, reservation, caller, tried)
            if reservation is not None and reservation.kept:
                return drafted
            if not put_targets(self.ports.records, drafted, targets):
                continue
            prepared = prepare(drafted)
            if prepared is not None and (batch := self.commit(prepared)) is not None:
                return batch
        raise Throttled("no free batch id was found; try again", retry_after=1)

    def draft(
        self, request: OpenBatch, reservation: Reservation | None, caller: Principal | None, tried: int
    ) -> Batch:
        """Check a request, and make its row with an id and a salt; the row is not written yet.

        If another process has opened the batch of the key meanwhile, this is the row of that.

        Args:
            request: what to open.
            reservation: of an idempotency key; it draws the id and the salt, and records them.
            caller: who opens it; None if that is not known.
            tried: how many ids turned out to be those of other batches.

        Raises:
            InvalidRequest: a value is out of range or contradicts another, or the parent batch has ended.
            InvalidItemId: the parent item was not issued by this service.
            BatchNotFound, BatchGone: the batch of ``retry_of`` or ``parent_item`` does not exist or is gone;
                or that of the key was removed.
            IdempotencyKeyReused: the key was used for another request.
        """
        now = self.ports.clock.now()
        self._check_request(request, now)
        batch_id, salt = reservation.draw(now, tried) if reservation else draw_id(self.ports, now, tried)
        if reservation and reservation.kept and (opened := reservation.batch()) is not None:
            return opened  # by another process, meanwhile
        defaults = self.ports.defaults
        is_open = request.size is None
        batch = Batch(
            batch_id=batch_id,
            salt=salt,
            created_at=now,
            touched_at=now,
            closed_at=None if is_open else now,
            expires_at=now // 1000 + self._lifetime(request) + RETENTION,
            open_idle_ttl=request.idle_ttl or defaults.open_idle_ttl,
            closed_idle_ttl=request.idle_ttl or defaults.closed_idle_ttl,
            mode=Mode(request.mode),
            kind=Kind(request.kind),
            state=State.OPEN if is_open else State.CLOSED,
            items=request.size or 0,
            user_key=request.user_key,
            deadline=request.deadline,
            on_deadline=OnDeadline(request.on_deadline),
            limit=request.limit,
            parent_item=request.parent_item,
            retry_of=request.retry_of,
            stall_after=defaults.stall_after if request.stall_after is None else request.stall_after,
            metadata=dict(request.metadata),
            keep=Keep(request.keep or Keep.MESSAGE),
            on_failure=OnFailure(request.on_failure),
            child_failures=ChildFailures(request.child_failures),
            tolerated_failures=request.tolerated_failures,
            held_more=request.on_failure is OnFailure.HOLD,
            targets=len(request.on_end),
            totals=dict.fromkeys(request.totals, 0),
            totals_before=self._earlier(request),
            results=request.results,
            max_items=request.max_items,
            milestones=checked_milestones(request.milestones, request.kind, Mode(request.mode)),
            opened_by=caller.name if caller else defaults.opened_by,
        )
        return replace(batch, touched_at=batch.rounded(now))

    def commit(self, batch: Batch) -> Batch | None:
        """Write the row of a drafted batch, and set its alarm; may be repeated.

        The row comes first: while it is not known that the id is free, an alarm could be another batch's. A
        row whose alarm was never set gets one from the repeat of its key, and else waits for the reaper.

        Returns:
            The batch as it is now; None if another batch has the id, and the caller should draft again.

        Raises:
            ItemHasChild: the parent item has another child, which lives or is complete.
        """
        if batch.deadline is not None:
            self.ports.timers.check()
        row = self.ports.batches.create(batch) if batch.parent_item is None else self._create_child(batch)
        return None if row is None else self._opened(row)

    def _create_child(self, batch: Batch) -> Batch | None:
        """Write the row of a batch that has a parent item, unless the item has another child.

        Two children of one item would both mark it: the first to end would speak for work of the other. A
        child that ended without completing gives way, so that its work can be tried again. The new one
        remembers it, so that its end still counts if the new one is never used.
        """
        block, ordinal = ids.parse_item(batch.parent_item or "")
        place, instead_of = ItemPlace(block.batch_id, ordinal), None
        for _ in range(TRIES):
            row, child = self.ports.batches.create_child(batch, place, instead_of=instead_of)
            if row is not None or child is None:
                return row
            batch = replace(batch, instead_of=self._given_way(child, of=batch.parent_item))
            instead_of = child
        raise Throttled(f"other calls open children of item {batch.parent_item}; try again", retry_after=1)

    def _given_way(self, child: int, *, of: str | None) -> int | None:
        """The batch whose end decides if the one in a child's place is never used; None if no work is lost.

        Raises:
            ItemHasChild: the child lives or is complete, and gives way to none.
        """
        row = self.ports.batches.read([child]).get(child)
        if row is not None and row.state is State.COMPLETE and row.used:
            raise ItemHasChild(
                f"item {of} already has a complete child, batch {child}; leave out parent_item", child=child
            )
        if row is not None and not (row.state.terminal or row.gone(self.ports.clock.now())):
            raise ItemHasChild(
                f"item {of} has the child batch {child}, which is {row.state}; go on with that batch, which"
                " an opening with the same idempotency key returns, or wait until it has ended",
                child=child,
            )
        if row is None:
            return None
        return row.batch_id if row.used else row.instead_of

    def _opened(self, batch: Batch) -> Batch:
        """Set the alarm of a batch whose row is written, and complete it if it is closed and empty."""
        if batch.deadline is not None and not batch.state.terminal:
            self.ports.timers.set(batch.batch_id, batch.deadline)
        return self.finish(self._known.remember(batch))

    def _earlier(self, request: OpenBatch) -> dict[str, int]:
        """The sums of the batch that a request retries, with those of the batches that this one retried."""
        if request.retry_of is None or not request.totals:
            return {}
        batch = count_totals(self.ports, self._known.current(request.retry_of))
        return {name: batch.totals.get(name, 0) + batch.totals_before.get(name, 0) for name in request.totals}

    def _lifetime(self, request: OpenBatch) -> int:
        """Seconds until the hard end of the batch."""
        return self.ports.defaults.lifetime if request.lifetime is None else request.lifetime

    def _check_request(self, request: OpenBatch, now: int) -> None:
        lifetime = self._lifetime(request)
        for name, value, least, most in (
            ("lifetime", lifetime, limits.MIN_LIFETIME, limits.MAX_LIFETIME),
            ("idle_ttl", request.idle_ttl, limits.MIN_IDLE_TTL, limits.MAX_LIFETIME),
            ("limit", request.limit, 1, limits.MAX_LIMIT),
            ("size", request.size, 0, ids.MAX_COUNT),
            ("max_items", request.max_items, 1, ids.MAX_ITEMS),
        ):
            if value is not None:
                limits.whole(name, value, least, most)
        limits.text("user_key", request.user_key, limits.MAX_USER_KEY)
        limits.pairs("metadata", request.metadata)
        check_limits(request, request.kind, request.mode, now=now, until=now + lifetime * 1000)
        for given, why in (
            (request.limit is not None, "cannot be bounded: leave out limit"),
            (request.results, "keeps no results: leave out results"),
        ):
            if given and request.mode is Mode.ESTIMATED:
                raise InvalidRequest(f"an estimated batch {why}, or open it in exact mode")
        check_names(request.totals)
        _check_early_targets(request)
        if request.on_failure is OnFailure.HOLD:
            _check_knows_failures('on_failure="hold"', request.mode, request.kind)
        if request.parent_item is not None:
            self._check_parent(request.parent_item)
        if request.retry_of is not None:
            self._known.current(limits.whole("retry_of", request.retry_of, 0, ids.MAX_BATCH_ID))

    def _check_parent(self, item: str) -> None:
        block, ordinal = ids.parse_item(item)
        parent = self._known.current(block.batch_id)
        check_issued(block, parent)
        if parent.mode is Mode.ESTIMATED:
            raise InvalidRequest(
                "`parent_item` is in an estimated batch, which may count it twice;"
                " open the parent batch in exact mode"
            )
        if parent.kind is Kind.SCATTER:
            raise InvalidRequest(
                "`parent_item` is a recipient of a scatter, which waits for its reply: leave it out, and"
                " reply when the new batch has ended"
            )
        if parent.state.terminal:
            child = self.ports.batches.child_of(ItemPlace(block.batch_id, ordinal))
            if child is not None:  # the message of the item came once more, after all was done
                raise ItemHasChild(
                    f"item {item} already has the child batch {child}, and its batch {parent.batch_id} is"
                    f" {parent.state}; leave out parent_item",
                    child=child,
                )
            raise InvalidRequest(
                f"the parent's batch {parent.batch_id} has ended: it is {parent.state};"
                " leave out parent_item, or name an item of another batch"
            )


def check_limits(asked: OpenBatch | ChangeLimits, kind: Kind, mode: Mode, *, now: int, until: int) -> None:
    """Refuse limits that no such batch can have, whether it is opened with them or gets them later.

    Args:
        asked: what is asked for.
        kind: of the batch.
        mode: of the batch.
        now: ms since the epoch.
        until: the end of the batch's lifetime, ms.
    """
    if asked.stall_after is not None:
        least = limits.MIN_STALL_AFTER if asked.stall_after else 0  # 0 is never
        limits.whole("stall_after", asked.stall_after, least, limits.MAX_LIFETIME)
    if asked.tolerated_failures is not None:
        asked.tolerated_failures.check()
        _check_knows_failures("tolerated_failures", mode, kind)
    deadline = asked.deadline
    if deadline is not None and type(deadline) is not int:
        raise InvalidRequest(f"the deadline must be a whole number of ms, not {limits.shown(deadline)}")
    if deadline is not None and not now < deadline <= until:
        raise InvalidRequest(
            f"the deadline must lie in the future, and within the batch's lifetime, which ends at"
            f" {encode_time(until)}; it is {'over' if deadline <= now else 'later'}:"
            f" now is {encode_time(now)}"
        )


def _check_early_targets(request: OpenBatch) -> None:
    """Refuse a target that would never be told."""
    for place, target in enumerate(request.on_end):
        what = f'on_end[{place}] has when="{target.when}", which'
        if target.when.early and request.kind is not Kind.BATCH:
            raise InvalidRequest(f"{what} is told of plain batches, not of a {request.kind}: leave it out")
        if target.when == When.WAITING and request.on_failure is not OnFailure.HOLD:
            raise InvalidRequest(f'{what} needs on_failure="hold": other batches wait for nobody')
        if target.when == When.PROGRESS and not request.milestones:
            raise InvalidRequest(f"{what} needs milestones, such as [50, 90]")


def checked_milestones(milestones: Sequence[int], kind: Kind, mode: Mode) -> tuple[int, ...]:
    """The milestones in ascending order.

    Raises:
        InvalidRequest: one is not a percent, there are too many, or the batch carries a pattern.
    """
    if len(milestones) > MAX_MILESTONES:
        raise InvalidRequest(f"{len(milestones)} milestones are given; a batch takes up to {MAX_MILESTONES}")
    for one in milestones:
        limits.whole("a milestone, in percent,", one, 1, WHOLE)
    if milestones and kind is not Kind.BATCH:
        raise InvalidRequest(f"milestones are for plain batches, not for a {kind}: leave them out")
    if milestones and mode is Mode.ESTIMATED:
        raise InvalidRequest(
            "an estimated batch takes no milestones, since it counts repeats: leave them out"
        )
    return tuple(sorted(set(milestones)))


def _check_knows_failures(named: str, mode: Mode, kind: Kind) -> None:
    """Refuse what only a plain batch that knows its items can have."""
    if mode is Mode.ESTIMATED:
        raise InvalidRequest(
            f"{named} needs to know which items failed, and an estimated batch only counts them: leave it"
            " out, or open the batch in exact mode"
        )
    if kind is not Kind.BATCH:
        raise InvalidRequest(f"{named} is for plain batches, not for a {kind}: leave it out")
