"""The store of batch rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from fanin.app.ports.parts import KeyRow
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import Batch, Cause, ChangeLimits, Kind, Mode, State, Trouble
from fanin.domain.changes import HAS_ENDED, IS_LIVE, IS_OPEN, NOT_DRAINING, Change, allocation, where
from fanin.domain.totals import Sums


class Activity(NamedTuple):
    """How activity changes a row's index key; the use case computes it, since it knows the idle time.

    Attributes:
        touched_at: becomes the row's ``touched_at``.
        due_at: becomes the row's ``due_at``.
    """

    touched_at: int
    due_at: int

    @classmethod
    def of(cls, batch: Batch, now: int) -> Activity:
        """The index key of a row after activity now."""
        at = max(batch.touched_at, batch.rounded(now))
        return cls(at, batch.active(at).look_at(now))


class Telling(NamedTuple):
    """What is noted once on the row of a live batch, so that it is told; see ``Batch.told``.

    Attributes:
        field: of the batch: ``failing_at``, ``waiting_at`` or ``milestone``.
        value: its value; only a milestone may follow a smaller one.
        trouble: becomes the row's ``attention``; None leaves it.
    """

    field: Literal["failing_at", "waiting_at", "milestone"]
    value: int
    trouble: Trouble | None = None


class Completion(NamedTuple):
    """What the end of an exact batch in which every item is done writes into its row; see ``Batch``."""

    failed: int
    failed_more: bool
    totals: Mapping[str, int] = {}
    totals_exact: bool = False


class ItemPlace(NamedTuple):
    """One item of a batch, whatever group of it named the item.

    Attributes:
        batch_id: the batch.
        ordinal: of the item in it.
    """

    batch_id: int
    ordinal: int


class Adoption(NamedTuple):
    """What an attempt to create a child of an item found.

    Attributes:
        row: the batch as it is stored, if it exists; None if the item has another child, or the id is taken.
        child: id of the batch that is the item's child; None if the id of the new batch is taken.
    """

    row: Batch | None
    child: int | None


class BatchRows(NamedTuple):
    """One page of batches from an index, in the order of the listing."""

    batches: list[Batch]
    cursor: str | None


ITEMS_LOST: Final = (
    "items may have been added that nobody knows; add them with an idempotency key, so that a repeat returns"
    " the same items"
)
COUNT_LOST: Final = (
    "its items may have been counted; compare the batch's status with what you have counted, because a repeat"
    " counts again"
)


Written: TypeAlias = tuple[Batch | None, bool]
"""The row as it is after a write (None if there is none), and whether this call has written it."""


class BatchStore(Protocol):
    """Keeps the batch rows. Every row that a call returns is the row after the call.

    What a call changes in one row is said here, as a ``Change``, and is the same in every store.
    """

    def apply(self, call: str, batch_id: int, change: Change, *, if_lost: str = "") -> Written:
        """Write a row, if it exists and the conditions of the change hold.

        Args:
            call: what asks for it.
            batch_id: of the row.
            change: what must hold, and what is written.
            if_lost: what may have happened if the answer is lost: such a request is sent only once.

        Raises:
            OutcomeUnknown: the answer to a request that is sent once was lost.
        """

    def create(self, batch: Batch) -> Batch | None:
        """Put a new row.

        Returns:
            The row as it is stored: a row with the same salt is this very batch, created by an earlier call,
            and may have moved on. None if another batch has the id.
        """

    def create_child(self, batch: Batch, of: ItemPlace, *, instead_of: int | None = None) -> Adoption:
        """Put a new row, and note the batch as the only child of an item; both or neither.

        Args:
            batch: the row.
            of: the item of the parent batch.
            instead_of: a child of the item, now ended, whose place the batch may take.
        """

    def child_of(self, item: ItemPlace) -> int | None:
        """The batch that was noted last as the item's child; None if none was, or the note has expired."""

    def read(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Read rows, strongly consistent; unknown ids are left out of the result."""

    def allocate(
        self, batch_id: int, n: int, *, activity: Activity | None, room: int | None, most: int | None = None
    ) -> Batch | None:
        """Add n items to an open batch that does not drain, by one conditional write.

        Not idempotent: a repeat after a lost answer adds n more. ``allocate_once`` does not.

        Args:
            batch_id: the batch.
            n: how many.
            activity: None leaves the index key unchanged, for a caller that has not read the row.
            room: None requires a batch without a limit; a number requires ``pending_bound`` ≤ room, and adds
                n to it.
            most: ``max_items`` of the row; None requires a batch without.

        Returns:
            The row after the addition, ``items`` being one past the last new ordinal; None if the
            condition failed: no such batch, not open, full, a limit where ``room`` is None or the other way
            round, the same of ``most``, or too many items.
        """
        change = allocation(n, _touched(activity), room=room, most=most)
        return _if_written(self.apply("allocate", batch_id, change, if_lost=ITEMS_LOST))

    def allocate_once(
        self, batch: Batch, n: int, key: IdempotencyKey, *, activity: Activity, by_item: bool = False
    ) -> int | None:
        """Add n items under an idempotency key, by one transaction of two rows.

        The row must still have ``batch.items`` items and be open, and drain only if an item adds; for a
        bounded batch ``pending_bound`` must leave room for n. The key's row keeps the range, even after the
        batch has closed.

        Returns:
            First ordinal of the range that the key stands for, from this call or an earlier one; None if
            the batch has changed since it was read, or is full: read it again.

        Raises:
            IdempotencyKeyReused: the key was used before with another n.
        """

    def allocate_keys(
        self, batch: Batch, rows: Sequence[KeyRow], *, activity: Activity, by_item: bool = False
    ) -> bool:
        """Add an item for each of some keys, all or none, by one transaction: as ``allocate_once``.

        Args:
            batch: the row, which must still have ``batch.items`` items, and take so many more.
            rows: at most ``MAX_KEYS``, whose ordinals follow ``batch.items``.
            activity: of the addition.
            by_item: whether an item adds.

        Returns:
            False if nothing was written: a key is an item already, or the batch has changed, or is full.
        """

    def allocate_counted(
        self, batch_id: int, n: int, *, items: int, pending: int, activity: Activity
    ) -> Batch | None:
        """Add n items to an open, bounded batch whose pending items were counted, by one conditional write.

        Not idempotent, like ``allocate``.

        Args:
            batch_id: the batch.
            n: how many.
            items: how many items the row must still have.
            pending: the count; ``pending_bound`` becomes ``pending + n``.
            activity: of the addition.

        Returns:
            The row after the addition; None if the condition failed.
        """
        when = [IS_OPEN, where("items", "=", items), where("limit", "<>", None)]
        sets = {"items": items + n, "pending_bound": pending + n, **_touched(activity)}
        change = Change(when, sets)
        return _if_written(self.apply("allocate_counted", batch_id, change, if_lost=ITEMS_LOST))

    def rebound(self, batch_id: int, *, items: int, pending: int) -> bool:
        """Store a fresh count of pending items, provided ``items`` has not changed since; else False."""
        change = Change([where("items", "=", items)], {"pending_bound": pending})
        return self.apply("rebound", batch_id, change)[1]

    def drain(self, batch_id: int, *, now: int, activity: Activity) -> Written:
        """Let an open batch drain; ``now`` becomes ``draining_at``."""
        sets = {"draining_at": now, **_touched(activity)}
        return self.apply("drain", batch_id, Change([IS_OPEN, NOT_DRAINING], sets))

    def close(
        self, batch_id: int, *, now: int, activity: Activity | None = None, grown: int | None = None
    ) -> Written:
        """Move an open batch to closed; ``now`` becomes ``closed_at``.

        Args:
            batch_id: the batch.
            now: when.
            activity: of the closed batch.
            grown: if given, the row must still have this value; so what an item adds stops the close. Whoever
                marks items may write this attribute, but not how many items there are.
        """
        when = [IS_OPEN] if grown is None else [IS_OPEN, where("grown", "=", grown)]
        sets = {"state": State.CLOSED, "closed_at": now, **_touched(activity)}
        return self.apply("close", batch_id, Change(when, sets))

    def begin(self, batch_id: int, items: int, *, now: int, deadline: int, activity: Activity) -> Written:
        """Give an open batch without items all of its items, and close it, once its pattern knows how many.

        Args:
            batch_id: the batch.
            items: how many.
            now: becomes ``closed_at``.
            deadline: becomes the deadline; ``retries`` are counted from here.
            activity: of the closed batch.
        """
        sets = {"state": State.CLOSED, "closed_at": now, **_touched(activity)}
        sets |= {"items": items, "deadline": deadline, "retries": 0}
        return self.apply("begin", batch_id, Change([IS_OPEN, where("items", "=", 0)], sets))

    def end(
        self,
        batch_id: int,
        state: State,
        *,
        now: int,
        sources: Collection[State],
        partial: bool = False,
        quiet: Batch | None = None,
        done: Completion | None = None,
        cause: Cause | None = None,
    ) -> Written:
        """Move a batch to a terminal state.

        Args:
            batch_id: the batch.
            state: the terminal state.
            now: becomes ``ended_at``.
            sources: states it may move from.
            partial: recorded with the move.
            quiet: if given, the row must still have its last activity, and drain if this does; so what
                comes meanwhile stops the reaper.
            done: what was counted in an exact batch that is complete.
            cause: recorded with the move.
        """
        when = [where("state", "in", tuple(sources))]
        if quiet is not None:
            when += [where("touched_at", "=", quiet.touched_at), where("draining_at", "=", quiet.draining_at)]
        sets = {"state": state, "ended_at": now, "partial": partial}
        if done is not None:
            sets |= {"failed": done.failed, "failed_more": done.failed_more}
            sets |= {"totals": done.totals, "totals_exact": done.totals_exact} if done.totals else {}
        if cause is not None:
            sets["cause"] = cause
        return self.apply("end", batch_id, Change(when, sets))

    def postpone(self, batch_id: int, *, deadline: int, until: int, activity: Activity) -> Written:
        """Move the deadline of a live batch from ``deadline`` to ``until``, and count the retry."""
        when = [IS_LIVE, where("deadline", "=", deadline)]
        sets = {"deadline": until, **_touched(activity)}
        return self.apply("postpone", batch_id, Change(when, sets, {"retries": 1}))

    def change(self, batch_id: int, change: ChangeLimits, *, failing: int | None, due_at: int) -> Written:
        """Change limits of a live batch.

        Args:
            batch_id: the batch.
            change: what changes.
            failing: becomes the row's hint of failures; None leaves it.
            due_at: becomes the row's ``due_at``.
        """
        sets = {**change.given, "due_at": due_at, **({} if failing is None else {"failing": failing})}
        return self.apply("change", batch_id, Change([IS_LIVE], sets))

    def touch(self, batch_id: int, activity: Activity) -> None:
        """Record activity on a live batch; does nothing if it has ended or was touched later."""
        when = [IS_LIVE, where("touched_at", "<=", activity.touched_at)]
        self.apply("touch", batch_id, Change(when, _touched(activity)))

    def tell_stall(self, batch_id: int, activity: Activity, trouble: Trouble, why: str) -> bool:
        """Note that the stall since ``activity.touched_at`` was told; False if there was activity since.

        The row's ``attention`` becomes the trouble, and ``stall_why`` the reason, in a few words.
        """
        when = [IS_LIVE, where("touched_at", "=", activity.touched_at)]
        sets = {"stall_told": activity.touched_at, "due_at": activity.due_at, "stall_why": why}
        return self.apply("tell_stall", batch_id, Change(when, {**sets, "attention": trouble}))[1]

    def count(self, batch_id: int, n: int, *, activity: Activity | None, sums: Sums = ()) -> Batch | None:
        """Add n to ``acked`` of a live batch that counts: estimated, or a scatter. None for any other.

        The sums are added to the totals of an estimated batch, in the order of its totals.

        Not idempotent, like ``allocate``.
        """
        counts = where("mode", "=", Mode.ESTIMATED) + where("kind", "=", Kind.SCATTER)
        change = Change([IS_LIVE, counts], _touched(activity), {"acked": n}, sums)
        return _if_written(self.apply("count", batch_id, change, if_lost=COUNT_LOST))

    def hint_failures(self, batch_id: int, n: int) -> Batch | None:
        """Add n to ``failing`` of a live batch; None if it has ended, or does not exist.

        Not idempotent, but repeated after a lost answer all the same: it is a hint.

        Returns:
            The row after the addition.
        """
        change = Change([IS_LIVE], adds={"failing": n})
        return _if_written(self.apply("hint_failures", batch_id, change))

    def count_in(self, state: State) -> tuple[int, bool]:
        """How many batches are in a state, by the index (eventually consistent), and whether there are more.

        It reads up to a megabyte of small entries of each shard, and no rows.
        """

    def page(self, state: State, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        """List batches of one state through the index (eventually consistent), shard by shard.

        Within a shard the oldest ``due_at`` is first. A page may be short, since rows that have left the
        state are dropped. Only a None cursor means the end.

        Raises:
            InvalidRequest: the cursor is not from a listing of this state.
        """

    def page_of_user_key(self, user_key: str, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        """List batches that were opened with a user key, through the index (eventually consistent).

        The newest id is first. A page may be short, since rows that were deleted are dropped. Only a None
        cursor means the end.

        Raises:
            InvalidRequest: the cursor is not from a listing of this user key.
        """

    def tell(self, batch_id: int, told: Telling) -> Batch | None:
        """Note on the row of a live batch what is to be told of it; the stream of the rows has it told.

        Returns:
            The row, if this call noted it; None if it was noted before, or the batch does not live.
        """
        fresh = where(told.field, "=", None)
        if told.field == "milestone":
            fresh = where(told.field, "=", 0) + where(told.field, "<", told.value)
        sets = {told.field: told.value, **({"attention": told.trouble} if told.trouble else {})}
        return _if_written(self.apply("tell", batch_id, Change([IS_LIVE, fresh], sets)))

    def flag(self, batch: Batch, trouble: Trouble | None) -> None:
        """Write the ``attention`` of a batch that has ended.

        Args:
            batch: its row.
            trouble: None removes the flag.
        """
        self.apply("flag", batch.batch_id, Change([HAS_ENDED], {"attention": trouble}))

    def page_of_flagged(self, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        """List batches that have ``attention``, through the index (eventually consistent).

        The most urgent trouble is first, and within one the newest id. A page may be short, since rows that
        were deleted are dropped. Only a None cursor means the end.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """

    def count_flagged(self) -> Mapping[Trouble, tuple[int, bool]]:
        """How many batches have each ``attention``, and whether there are more; as ``count_in``."""

    def page_of_parent(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> BatchRows:
        """List the children of a batch's items, by the notes of the items (eventually consistent).

        A page may be short, since rows that were deleted are dropped. Only a None cursor means the end.

        Raises:
            InvalidRequest: the cursor is not from a listing of this batch's children.
        """

    def due(self, before: int) -> Iterator[int]:
        """List the live batches whose ``due_at`` is before a time, through the index (eventually consistent).

        Returns:
            Their ids, the longest due first, whatever their state and shard; read as they are taken.
        """

    def expire(self, batch_id: int, *, now: int) -> bool:
        """Set the time to live of an ended batch to now, so that it reads as gone; False if it did before.

        Its ``attention`` is removed, too.
        """
        when, sets = [HAS_ENDED, where("expires_at", ">", now // 1000)], {"expires_at": now // 1000}
        return self.apply("expire", batch_id, Change(when, {**sets, "attention": None}))[1]


def _if_written(after: Written) -> Batch | None:
    row, written = after
    return row if written else None


def _touched(activity: Activity | None) -> dict[str, Any]:
    return {} if activity is None else activity._asdict()
