"""Conditional writes of the row of a batch: what must hold, and what is set and added then.

Each change of a batch is declared once, in ``fanin.app.ports.batches``. A store carries it out: in memory on
the row itself, on DynamoDB as an expression.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import eq, gt, le, lt, ne
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from fanin.domain.batch import LIVE, Batch, State
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.totals import Sums, by_name, plus

Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", "in"]
_HOLDS: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    "in": lambda value, among: value in among,
}


class Test(NamedTuple):
    """What a field of the row must be.

    Attributes:
        field: its name.
        is_: how it compares with the value.
        value: for ``in`` several; None, or the default of the field, for a field that has no value.
    """

    field: str
    is_: Operator
    value: Any


Condition: TypeAlias = tuple[Test, ...]
"""Tests of which one must hold; two conditions are joined by ``+``."""


def where(name: str, is_: Operator, value: Any) -> Condition:
    return (Test(name, is_, value),)


IS_OPEN: Final = where("state", "=", State.OPEN)
IS_LIVE: Final = where("state", "in", LIVE)
HAS_ENDED: Final = where("state", "in", tuple(state for state in State if state.terminal))
NOT_DRAINING: Final = where("draining_at", "=", None)


def holds(when: Iterable[Condition], value_of: Callable[[str], Any]) -> bool:
    """Whether all conditions hold."""
    return all(any(_HOLDS[is_](value_of(name), value) for name, is_, value in one) for one in when)


@dataclass(frozen=True)
class Change:
    """A write of the row of a batch.

    Attributes:
        when: conditions that must all hold.
        sets: field → new value. ``due_at`` is no field: it is where the index lists the batch.
        adds: field → number to add.
        sums: to add to the totals, in their order.
    """

    when: Sequence[Condition]
    sets: Mapping[str, Any] = field(default_factory=dict)
    adds: Mapping[str, int] = field(default_factory=dict)
    sums: Sums = ()

    def fits(self, row: Batch) -> bool:
        """Whether its conditions hold."""
        return holds(self.when, partial(getattr, row))

    def of(self, row: Batch) -> Batch:
        """The row after the write."""
        new = {name: value for name, value in self.sets.items() if name != "due_at"}
        new |= {name: getattr(row, name) + n for name, n in self.adds.items()}
        if self.sums:
            before, brought = tuple(row.totals.values()), self.sums[: len(row.totals)]
            new["totals"] = by_name(tuple(row.totals), plus(before, brought))
        return replace(row, **new)


def allocation(n: int, sets: Mapping[str, int], *, room: int | None, most: int | None) -> Change:
    """Add n items to an open batch that does not drain; see ``BatchStore.allocate``."""
    capped = where("max_items", "=" if most is None else "<>", None)
    when = [IS_OPEN, NOT_DRAINING, where("items", "<=", (MAX_ITEMS if most is None else most) - n), capped]
    if room is None:
        return Change([*when, where("limit", "=", None)], sets, {"items": n})
    bounded = [where("limit", "<>", None), where("pending_bound", "<=", room)]
    return Change([*when, *bounded], sets, {"items": n, "pending_bound": n})


def allocation_of(
    batch: Batch, n: int, sets: Mapping[str, int], *, by_item: bool, keyed: bool = False
) -> Change:
    """Add n items to a batch that still has the items that were read; see ``BatchStore.allocate_once``."""
    room = None if batch.limit is None else batch.limit - n
    plain = allocation(n, sets, room=room, most=batch.max_items)
    when = [test for test in plain.when if not (by_item and test is NOT_DRAINING)]
    more = {**({"grown": n} if by_item else {}), **({"keyed": n} if keyed else {})}
    return Change([*when, where("items", "=", batch.items)], sets, {**plain.adds, **more})
