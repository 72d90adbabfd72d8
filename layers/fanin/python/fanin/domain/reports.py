"""Reports about batches: how far they are, what is missing, what failed, what disagrees."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fanin.domain.batch import Batch, Trouble
from fanin.domain.failures import KeptMessage, error_of
from fanin.domain.ids import MAX_COUNT, issue, parse_prefix
from fanin.domain.limits import MAX_MARKS
from fanin.domain.marks import ItemRange


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a batch has cost so far, as far as its row can tell: no row counts requests.

    Attributes:
        dollars: at list prices, if its items were marked over HTTPS, any ten items a call.
        at_least: if one range marked them.
        at_most: if each was marked over HTTPS by itself.
        region: region whose list prices were taken.
        since: date of these prices.
        estimate: always true: no row counts requests.
    """

    dollars: float
    at_least: float
    at_most: float
    region: str
    since: str
    estimate: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is.

    Attributes:
        batch: the batch row.
        done_min: at least this many items are done.
        done_max: at most this many are; equal to ``done_min`` when the count is exact.
        cost: what the batch has cost so far, as far as its row can tell; None where that was not asked for,
            and from a service that does not estimate it.
    """

    batch: Batch
    done_min: int
    done_max: int
    cost: Estimate | None = None

    @property
    def exact(self) -> bool:
        return self.done_min == self.done_max


@dataclass(frozen=True, slots=True)
class MissingRange:
    """A range of items that are not done.

    Attributes:
        start: ordinal of the first item in the batch.
        stop: one past the last ordinal.
        group: ``<batch id>:<group id>`` of all items of the batch: that of ``add``, if it was called once. So
            ``<group>:<ordinal>`` is an item. A batch of more than 4,294,967,295 items has several.
        keys: the keys of its first items, in the first ranges of an answer; empty if they have none.
    """

    start: int
    stop: int
    group: str
    keys: tuple[str, ...] = ()

    @property
    def items(self) -> ItemRange:
        """The same as a range that can be acknowledged, as in ``tracker.ack(found.items)``."""
        first = parse_prefix(self.group).first
        return ItemRange(self.group, self.start - first, self.stop - first)


def missing_ranges(batch: Batch, found: Iterable[tuple[int, int]]) -> tuple[MissingRange, ...]:
    """Name the group of each range; one is cut where a group ends, since that can have so many items only.

    In a batch with totals, a range is cut into what one request takes, since it is marked item by item.
    """
    if batch.totals:
        found = [
            (at, min(stop, at + MAX_MARKS)) for start, stop in found for at in range(start, stop, MAX_MARKS)
        ]
    return tuple(
        MissingRange(max(start, block.first), min(stop, block.stop), block.prefix)
        for start, stop in found
        for first in range(start - start % MAX_COUNT, stop, MAX_COUNT)
        for block in [issue(batch.batch_id, first, min(MAX_COUNT, batch.items - first), batch.salt)]
    )


@dataclass(frozen=True, slots=True)
class Missing:
    """One page of what is missing.

    Attributes:
        ranges: ascending.
        cursor: gets the next page; None at the end.
    """

    ranges: tuple[MissingRange, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The result of an item that is done.

    Attributes:
        ordinal: of the item in the batch.
        item: the id under which it was acknowledged.
        result: a JSON value.
        key: of the item; empty if it has none.
    """

    ordinal: int
    item: str
    result: Any
    key: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """One page of the results of a batch.

    Attributes:
        results: by ordinal.
        cursor: gets the next page; None at the end.
    """

    results: tuple[ItemResult, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class FailedItem:
    """A failed item of a batch.

    Attributes:
        ordinal: of the item in the batch.
        item: the id under which it was reported.
        reason: why it failed, for people.
        failed_at: when it was reported, ms.
        attempts: how often its message was received; 0 if that is not known.
        source: URL or ARN of the queue that its message came from; empty if that is not known.
        kept: whether its message was kept; ``Ledger.failure`` reads it.
        redriven: name of the redrive that sent it again; None if none has.
        held: whether it is pending, because its batch holds failed items.
        key: of the item; empty if it has none.
    """

    ordinal: int
    item: str
    reason: str
    failed_at: int
    attempts: int = 0
    source: str = ""
    kept: bool = False
    redriven: str | None = None
    held: bool = False
    key: str = ""

    @property
    def error(self) -> str:
        """What the reason has in common with those of other items; see ``error_of``."""
        return error_of(self.reason)


@dataclass(frozen=True, slots=True)
class Failures:
    """One page of the failed items of a batch."""

    failures: tuple[FailedItem, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class FailedMessage:
    """A failed item, and its message; None if that was not kept, or was deleted since."""

    failure: FailedItem
    message: KeptMessage | None = None


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Failed items whose reasons are alike.

    Attributes:
        error: what their reasons have in common.
        failed: how many they are.
        example: the reason of the first of them, its first 256 characters.
        first: ordinal of the first item that failed so.
        last_failed_at: when the last of them was reported, ms.
        kept: how many of their messages were kept.
    """

    error: str
    failed: int
    example: str
    first: int
    last_failed_at: int
    kept: int = 0

    def plus(self, other: "ErrorGroup") -> "ErrorGroup":
        """Both groups, which have the same error, as one."""
        first = min(self, other, key=lambda group: group.first)
        latest = max(self.last_failed_at, other.last_failed_at)
        failed, kept = self.failed + other.failed, self.kept + other.kept
        return replace(first, failed=failed, last_failed_at=latest, kept=kept)


@dataclass(frozen=True, slots=True)
class Errors:
    """The failures of one part of a batch by error, the most frequent first."""

    errors: tuple[ErrorGroup, ...]
    cursor: str | None = None


def by_error(groups: Iterable[ErrorGroup]) -> tuple[ErrorGroup, ...]:
    """One group for each error, the most frequent first; of those as frequent, the one that began first."""
    merged: dict[str, ErrorGroup] = {}
    for group in groups:
        before = merged.get(group.error)
        merged[group.error] = group if before is None else before.plus(group)
    return tuple(sorted(merged.values(), key=lambda group: (-group.failed, group.first)))


@dataclass(frozen=True, slots=True)
class Batches:
    """One page of batches."""

    batches: tuple[Batch, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """How many batches there are.

    Attributes:
        states: how many batches are in each state.
        at_least: states with more batches than ``states`` says: one read counts 100,000 or so.
    """

    states: Mapping[str, int]
    at_least: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Troubled:
    """A batch that a person should look at.

    Attributes:
        batch: the row, with the failed and held items that were seen.
        trouble: what is wrong, the most urgent first if there is more than one thing.
        reason: the same in words.
        action: the word of the command that helps, ``fanin <action> <batch>``.
    """

    batch: Batch
    trouble: Trouble
    reason: str
    action: str


@dataclass(frozen=True, slots=True)
class Attention:
    """What a person should look at, the most urgent first.

    Attributes:
        batches: one page of them; live ones come before ended ones.
        counts: how many batches there are in all, by what is wrong.
        cursor: goes on with the next page; None at the end.
        at_least: what is wrong with more batches than ``counts`` says: one read counts 80,000 or so.
    """

    batches: tuple[Troubled, ...]
    counts: Mapping[str, int]
    cursor: str | None = None
    at_least: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Expired:
    """How many batches an expiry orphaned or removed, and how many items they had.

    Attributes:
        batches: how many they are.
        items: how many items they had.
        cursor: goes on with the next page; None at the end.
    """

    batches: int = 0
    items: int = 0
    cursor: str | None = None


def merge_expired(pages: Iterable[Expired]) -> Expired:
    """How many batches several pages have expired, with how many items."""
    found = list(pages)
    return Expired(sum(page.batches for page in found), sum(page.items for page in found))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying a batch.

    Attributes:
        batch: the row, after repair.
        pending: items not done, counted from the leaves up.
        disagreements: what disagreed, in words; empty if nothing did.
        repaired: whether this call repaired it.
        cursor: continues where the budget of reads ended; None once everything was checked.
    """

    batch: Batch
    pending: int
    disagreements: tuple[str, ...] = ()
    repaired: bool = False
    cursor: str | None = None


def merge_verdicts(pages: Iterable[Verdict]) -> Verdict:
    """One verdict on a whole batch from the verdicts on its pages.

    Args:
        pages: at least one, in order.
    """
    verdict, *others = pages
    # Neighbouring pages both check the words above their border, and say the same about them.
    for page in others:
        said = tuple(dict.fromkeys(verdict.disagreements + page.disagreements))
        pending, repaired = verdict.pending + page.pending, verdict.repaired or page.repaired
        verdict = replace(page, pending=pending, disagreements=said, repaired=repaired)
    return verdict


@dataclass(frozen=True, slots=True)
class ReleasedItems:
    """What a release did.

    Attributes:
        batch: the row afterwards; complete, if nothing else was pending.
        released: items that this call marked as failed. After a lost answer that was repeated, it may be too
            few.
        cursor: goes on with the next page; None at the end.
    """

    batch: Batch
    released: int = 0
    cursor: str | None = None
