"""Acknowledging: what callers report about their items, and the receipts they get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import parse_batch_id
from fanin.domain.limits import MAX_REASON
from fanin.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class ItemRange:
    """A contiguous range of the items of one group.

    Attributes:
        group: ``<batch id>:<group id>``.
        start: index of the first item.
        stop: one past the last; None for the end of the group.
    """

    group: str
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """An acknowledgement without ids, for estimated batches: ``n`` more items are done.

    Attributes:
        batch_id: the batch.
        n: how many items.
        totals: what they add to the totals of the batch, all together; a repeat adds it again.
    """

    batch_id: int
    n: int
    totals: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Result:
    """An item that is done, and what it adds to the totals of its batch.

    Attributes:
        item: its id.
        totals: a whole number within ±2⁵³ for each total, by name; 0 for those left out. They are added when
            this acknowledgement is the item's first.
    """

    item: str
    totals: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that failed, and so counts as done.

    Attributes:
        item: its id.
        reason: why, for people; at most 1,024 characters.
        message: its message, which is kept so that it can be sent again.
        attempts: how often the message was received; 0 if that is not known.
        source: URL or ARN of the queue it came from; empty if that is not known.
        totals: what the item adds to the totals of its batch all the same; see ``Result``.
    """

    item: str
    reason: str = ""
    message: KeptMessage | None = field(default=None, repr=False)
    attempts: int = 0
    source: str = ""
    totals: Mapping[str, int] = field(default_factory=dict, hash=False)


def dead_letter_reason(received: int | str, queue: str, error: str = "") -> str:
    """Why an item failed whose message died.

    Args:
        received: how often the message was received, the dead-letter queue included.
        queue: name of the queue that gave it up.
        error: why the last attempt failed, if that is known.
    """
    reason = f"dead letter: received {received} times from {queue}"
    return f"{reason}: {error}"[:MAX_REASON] if error else reason


@dataclass(frozen=True, slots=True)
class Acks:
    """One request to mark items done: the body of an acknowledgement and of a message of the ack queue.

    Attributes:
        items: item ids.
        ranges: ranges of groups.
        counts: acknowledgements without ids, for estimated batches.
        failures: items that failed; not part of the body of an acknowledgement.
        results: items with values for the totals of their batches.
    """

    items: Sequence[str] = ()
    ranges: Sequence[ItemRange] = ()
    counts: Sequence[Count] = ()
    failures: Sequence[Failure] = ()
    results: Sequence[Result] = ()

    @property
    def empty(self) -> bool:
        """Whether it names nothing."""
        return not (self.items or self.ranges or self.counts or self.failures or self.results)

    @property
    def batches(self) -> set[int]:
        """Ids of the batches that it names; malformed ids of items and groups name none."""
        named = (
            *self.items,
            *(one.group for one in self.ranges),
            *(one.item for one in self.failures),
            *(one.item for one in self.results),
        )
        batches = {count.batch_id for count in self.counts}
        for prefix in {name.partition(":")[0] for name in named}:
            with suppress(InvalidRequest):
                batches.add(parse_batch_id(prefix))
        return batches


def join(parts: Iterable[Acks]) -> Acks:
    """One request that names everything that the parts name, in their order, repeats included."""
    requests = list(parts)
    return Acks(
        items=[item for acks in requests for item in acks.items],
        ranges=[item_range for acks in requests for item_range in acks.ranges],
        counts=[count for acks in requests for count in acks.counts],
        failures=[failure for acks in requests for failure in acks.failures],
        results=[result for acks in requests for result in acks.results] or (),
    )


def each(acks: Acks) -> list[Acks]:
    """A request for each thing that a request names."""
    return [
        *(Acks(items=[item]) for item in acks.items),
        *(Acks(ranges=[item_range]) for item_range in acks.ranges),
        *(Acks(counts=[count]) for count in acks.counts),
        *(Acks(failures=[failure]) for failure in acks.failures),
        *(Acks(results=[result]) for result in acks.results),
    ]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an acknowledgement did to one batch.

    Attributes:
        batch_id: the batch.
        user_key: its user key.
        state: its state as last read; that may be some seconds ago, unless it is complete.
        complete: whether the batch is complete now.
        first: items that this call marked done, and no call before.
        duplicates: ids of items that were done already.
        ranged: items marked done by range, or counted in estimated mode; some may have been done before.
        late: items not marked because the batch had already ended.
        held: items that failed and stay pending, because the batch holds them.
    """

    batch_id: int
    user_key: str
    state: State
    complete: bool = False
    first: int = 0
    duplicates: tuple[str, ...] = ()
    ranged: int = 0
    late: int = 0
    held: int = 0
