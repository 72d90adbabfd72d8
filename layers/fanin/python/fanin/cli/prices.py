"""What a fan-out of n items costs with fanin and with what one would do otherwise. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fanin.domain.tree import Tree

BLOCK: Final = 10_000
"""Items that ``send`` adds at a time."""


@dataclass(frozen=True)
class Prices:
    """Dollars for a million units, without free tiers and taxes.

    Attributes:
        write: DynamoDB on-demand write request units, 1 KB each.
        read: DynamoDB on-demand read request units, 4 KB strongly consistent each.
        transition: Step Functions state transitions, Standard workflows.
        region: where these prices hold.
        since: since when.
    """

    write: float = 0.625
    read: float = 0.125
    transition: float = 25.0
    region: str = "us-east-1"
    since: str = "2024-11-01"


@dataclass(frozen=True)
class Cost:
    """One way to know when n items are done.

    Attributes:
        way: its name.
        writes: write request units.
        reads: read request units.
        transitions: state transitions.
        note: what it assumes, or what it lacks.
    """

    way: str
    writes: int
    reads: int = 0
    transitions: int = 0
    note: str = ""

    def dollars(self, prices: Prices) -> float:
        """What it costs."""
        micro = self.writes * prices.write + self.reads * prices.read + self.transitions * prices.transition
        return micro / 1e6


def costs(items: int, *, together: int = 1) -> list[Cost]:
    """Compare fanin with the alternatives.

    Args:
        items: in the batch.
        together: neighbouring items that one acknowledgement marks, 1 to 64.
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
            note="put, then update; read once at the end, 100 bytes a row; who looks, and when, is open",
        ),
        Cost(
            "Step Functions",
            writes=0,
            transitions=items + 1,
            note="Distributed Map, Standard, one state an item; without retries",
        ),
    ]


def parents(items: int) -> int:
    """Words above level 0 that change while all items are acknowledged: one write for each word below."""
    tree = Tree()
    return sum(tree.last(level, items) + 1 for level in range(tree.root_level(items))) if items else 0


def _life(items: int) -> int:
    """Writes of the batch row and its index: open, add, activity, close, complete."""
    blocks = -(-items // BLOCK)
    return 12 + 4 * blocks  # a transaction of two rows counts twice


def _fanin(items: int, together: int) -> Cost:
    writes = _life(items) + -(-items // together) + parents(items)
    how = "one ack an item" if together == 1 else f"{together} neighbours an ack"
    return Cost(f"fanin, {how}", writes, reads=20, note="exact: a repeat is a repeat, any order")


def _fanin_range(items: int) -> Cost:
    marks = len(list(Tree().cover(0, items, items))) if items else 0
    return Cost("fanin, one range", 16 + 2 * marks, reads=20, note="a Spark job acknowledges what it did")
