"""How many writes words take: which items are acknowledged together decides. Pure arithmetic."""

from __future__ import annotations

from enum import StrEnum
from math import expm1, lcm, log1p

from fanin.domain.tree import Tree


class Order(StrEnum):
    """Which items are acknowledged together.

    Attributes:
        SCATTERED: any items of the batch: queues do not keep neighbours together.
        NEIGHBOURS: items that follow one another, as a producer has added them.
    """

    SCATTERED = "scattered"
    NEIGHBOURS = "neighbours"


def parents(items: int) -> int:
    """Writes above level 0 while all items are acknowledged: one for each word that has a parent."""
    tree = Tree()
    return sum(tree.last(level, items) + 1 for level in range(tree.root_level(items))) if items else 0


def carried(items: int, together: int, order: Order) -> int:
    """Writes above level 0, if so many items are acknowledged by each call.

    A call of neighbours that finishes several words of one parent writes that parent once. Of scattered
    items, words are taken to finish one by one.
    """
    if order is Order.SCATTERED or not items:
        return parents(items)
    tree, writes = Tree(), 0
    calls = -(-items // together)
    for level in range(tree.root_level(items)):
        children, above = (tree.last(at, items) + 1 for at in (level, level + 1))
        writes += min(children, calls + above - 1)
    return writes


def words_touched(items: int, together: int, order: Order, *, of: int | None = None) -> float:
    """Writes to words of level 0, if so many items are acknowledged by each call.

    Args:
        items: that are acknowledged.
        together: items of a call.
        order: which.
        of: items of the batch; None for as many as are acknowledged.
    """
    width = Tree().width
    if order is Order.NEIGHBOURS:
        # Calls begin at multiples of ``together``. A call writes a word more for each edge within it.
        edges = -(-items // width) - -(-items // lcm(together, width))
        return -(-items // together) + edges
    words = -(-(of or items) // width)
    if words <= 1:
        return -(-items // together)
    calls, rest = divmod(items, together)
    return sum(
        count * -expm1(size * log1p(-1 / words)) * words for count, size in ((calls, together), (1, rest))
    )
