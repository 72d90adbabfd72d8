"""What it costs to track a fan-out of n items with fanin and with its alternatives. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fanin.domain import limits
from fanin.domain.tree import Tree

BLOCK: Final = 10_000
"""Items that ``batch.send`` adds in one call."""
_ROW: Final = 128
"""Bytes of a row beside the message in it."""


@dataclass(frozen=True)
class Prices:
    """Dollars for a million units, without free tiers and taxes.

    Attributes:
        write: DynamoDB on-demand write request units, 1 KB each.
        read: DynamoDB on-demand read request units, 4 KB strongly consistent each.
        transition: Step Functions state transitions, Standard workflows.
        region: AWS region of these prices.
        since: date since when they hold, ISO 8601.
    """

    write: float = 0.625
    read: float = 0.125
    transition: float = 25.0
    region: str = "us-east-1"
    since: str = "2024-11-01"


@dataclass(frozen=True)
class Cost:
    """What one way to know when n items are done consumes.

    Attributes:
        way: its name.
        writes: write request units.
        reads: read request units.
        transitions: state transitions.
        note: what this assumes, or what is missing.
    """

    way: str
    writes: int
    reads: int = 0
    transitions: int = 0
    note: str = ""

    def dollars(self, prices: Prices) -> float:
        """The cost in dollars."""
        micro = self.writes * prices.write + self.reads * prices.read + self.transitions * prices.transition
        return micro / 1e6


def costs(items: int, *, together: int = 1) -> list[Cost]:
    """Compare fanin with the alternatives; the last is what ranges cost where a batch has totals.

    Args:
        items: number of items in the batch.
        together: neighbouring items that one acknowledgement marks done, 1 to 64.
    """
    return [
        _fanin(items, together),
        _fanin_range(items),
        Cost(
            "counter",
            writes=items + 1,
            note="a message delivered twice counts twice; one row takes 1,000 writes a second",
        ),
        Cost(
            "row per message",
            writes=2 * items,
            reads=-(-items // 40),
            note="put, then update; 100 bytes a row, all read once at the end; something must poll",
        ),
        Cost(
            "Step Functions",
            writes=0,
            transitions=items + 1,
            note="Distributed Map, Standard workflow, one state an item; no retries",
        ),
        _fanin_totals(items),
    ]


def spent(items: int, done: int, failed: int, *, exact: bool = True) -> list[Cost]:
    """What a batch has consumed so far; how its items were marked decides, and no row says that.

    The writes of its whole life are counted, although its end may be still to come.

    Args:
        items: that were added.
        done: items that are done, failed ones included.
        failed: items that failed.
        exact: whether it has a tree; an estimated batch has one counter.

    Returns:
        The cost for each of three ways to mark items, the dearest first.
    """
    failures = failed * failure_writes(0)
    above = parents(done) if exact else 0
    ways = [
        Cost(way, _life(items) + -(-done // together) + above + failures, reads=20)
        for way, together in (("one item an acknowledgement", 1), ("64 neighbours an acknowledgement", 64))
    ]
    marks = 2 * len(list(Tree().cover(0, done, items))) if done else 0
    return [*ways, Cost("one range", _life(min(items, BLOCK)) + marks + failures, reads=20)]


def failure_writes(message_bytes: int) -> int:
    """Write units of an item that fails, beyond those of one that is done.

    Args:
        message_bytes: of its message as JSON; one of more than 8 KiB is in the bucket.
    """
    row = 0 if message_bytes > limits.MAX_KEPT_INLINE else -(-(message_bytes + _ROW) // 1024)
    return 1 + row  # the note, and the message


def parents(items: int) -> int:
    """Writes above level 0 while all items are acknowledged: one for each word that has a parent."""
    tree = Tree()
    return sum(tree.last(level, items) + 1 for level in range(tree.root_level(items))) if items else 0


def _life(items: int) -> int:
    """Writes to the batch row and its indexes: open with a user key, add, activity, close, complete."""
    blocks = -(-items // BLOCK)
    return 13 + 4 * blocks  # a transaction of two rows counts twice


def _fanin(items: int, together: int) -> Cost:
    writes = _life(items) + -(-items // together) + parents(items)
    how = "one ack an item" if together == 1 else f"{together} neighbours an ack"
    return Cost(f"fanin, {how}", writes, reads=20, note="exact: repeats and order change nothing")


def _fanin_range(items: int) -> Cost:
    marks = len(list(Tree().cover(0, items, items))) if items else 0
    return Cost("fanin, one range", 17 + 2 * marks, reads=20, note="as a Spark job acknowledges")


def _fanin_totals(items: int) -> Cost:
    """Ranges of a batch with totals, in order: each call writes the words below its marks, a word at a time.

    Where two calls meet, both write the words that lie across; and a word is written at most once for each
    word below it.
    """
    tree, calls = Tree(), -(-items // limits.MAX_IDS)
    writes, children = 0, items
    for level in range(tree.root_level(items) + 1):
        words = tree.last(level, items) + 1
        writes += min(words + calls - 1, children)
        children = words
    note = (
        "marked word by word, a write for 64 items, so that what items below have brought is kept;"
        f" a call takes {limits.MAX_IDS:,} items by ranges"
    )
    return Cost("fanin, ranges of a batch with totals", 17 + writes, reads=20, note=note)
