"""Rows of parts of batches, in dicts."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from fanin import names
from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.parts import KeyRange, PartKey, Parts, Row, Rows, When, Written
from fanin.domain.changes import holds

T = TypeVar("T")
R = TypeVar("R")


class MemoryParts(Parts):
    """A ``PartStore``.

    Args:
        accesses: counts rows.
    """

    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses
        self._rows: dict[PartKey, Row] = {}
        self._order: list[PartKey] = []  # so that a page costs what it holds, however many rows there are

    def there(self, key: PartKey) -> bool:
        """Whether there is such a row; for the store of batches, within an access of its own."""
        return key in self._rows

    def apply(self, key: PartKey, values: Row, when: When = (), stays: str = "") -> bool:
        """Write a row if its conditions hold, within an access."""
        before = self._rows.get(key, {})
        if not holds(when, before.get):
            return False
        new = {**before, **values, names.PART: key[1]}
        if stays in before:
            new[stays] = before[stays]
        if key not in self._rows:
            insort(self._order, key)
        self._rows[key] = {name: v for name, v in new.items() if v is not None}
        return True

    def _write(self, call: str, key: PartKey, values: Row, when: When = (), stays: str = "") -> Written:
        def write() -> Written:
            if self.apply(key, values, when, stays):
                return True, None
            self._accesses.refused[f"parts.{call}"] += 1
            return False, self._rows.get(key)

        return self._accesses.write(f"parts.{call}", write)

    def _read(self, call: str, keys: Sequence[PartKey]) -> list[Row]:
        rows = (self._accesses.read(f"parts.{call}", partial(self._rows.get, key)) for key in keys)
        return [row for row in rows if row is not None]

    def _between(self, call: str, span: KeyRange, limit: int, *, last_first: bool = False) -> Rows:
        def query() -> list[Row]:
            start = bisect_left(self._order, (span.partition, span.first))
            stop = bisect_right(self._order, (span.partition, span.last))
            if last_first:
                keys = self._order[max(start, stop - limit - 1) : stop][::-1]
            else:
                keys = self._order[start : min(stop, start + limit + 1)]
            return [self._rows[key] for key in keys]

        found = self._accesses.read(f"parts.{call}", query)
        return found[:limit], len(found) > limit

    def _delete(self, call: str, keys: Sequence[PartKey]) -> None:
        def delete(key: PartKey) -> None:
            if self._rows.pop(key, None) is not None:
                del self._order[bisect_left(self._order, key)]

        for key in keys:
            self._accesses.write(f"parts.{call}", partial(delete, key))

    def _each(self, call: Callable[[T], R], values: Sequence[T]) -> list[R]:
        return list(map(call, values))
