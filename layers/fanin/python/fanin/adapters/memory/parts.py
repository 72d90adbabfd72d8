"""Rows of parts of batches, in dicts."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from fanin import names
from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.parts import KeyRange, PartKey, Parts, Row, Rows, When, Written
from fanin.domain.changes import holds

T = TypeVar("T")
R = TypeVar("R")


class _Partition(dict[str, Row]):
    """Rows by part, whose pages cost what they hold, however many rows there are."""

    def __init__(self) -> None:
        self._order: list[str] = []

    def __setitem__(self, part: str, row: Row) -> None:
        if part not in self:
            insort(self._order, part)
        super().__setitem__(part, row)

    def __delitem__(self, part: str) -> None:
        super().__delitem__(part)
        del self._order[bisect_left(self._order, part)]

    def between(self, span: KeyRange, limit: int, *, last_first: bool) -> list[Row]:
        """Up to ``limit`` rows of a span."""
        start, stop = bisect_left(self._order, span.first), bisect_right(self._order, span.last)
        if last_first:
            return [self[part] for part in reversed(self._order[max(start, stop - limit) : stop])]
        return [self[part] for part in self._order[start : min(stop, start + limit)]]


class MemoryParts(Parts):
    """A ``PartStore``.

    Args:
        accesses: counts rows.
    """

    def __init__(self, accesses: Accesses) -> None:
        self._accesses = accesses
        self._partitions: dict[int, _Partition] = defaultdict(_Partition)

    def there(self, key: PartKey) -> bool:
        """Whether there is such a row; for the store of batches, within an access of its own."""
        return key[1] in self._partitions[key[0]]

    def apply(self, key: PartKey, values: Row, when: When = (), stays: str = "") -> bool:
        """Write a row if its conditions hold, within an access."""
        partition, part = key
        before = self._partitions[partition].get(part, {})
        if not holds(when, before.get):
            return False
        new = {**before, **values, names.PART: part}
        if stays in before:
            new[stays] = before[stays]
        self._partitions[partition][part] = {name: v for name, v in new.items() if v is not None}
        return True

    def _write(self, call: str, key: PartKey, values: Row, when: When = (), stays: str = "") -> Written:
        def write() -> Written:
            if self.apply(key, values, when, stays):
                return True, None
            self._accesses.refused[f"parts.{call}"] += 1
            return False, self._partitions[key[0]].get(key[1])

        return self._accesses.write(f"parts.{call}", write)

    def _read(self, call: str, keys: Sequence[PartKey]) -> list[Row]:
        def read(key: PartKey) -> Row | None:
            return self._partitions[key[0]].get(key[1])

        rows = (self._accesses.read(f"parts.{call}", partial(read, key)) for key in keys)
        return [row for row in rows if row is not None]

    def _between(self, call: str, span: KeyRange, limit: int, *, last_first: bool = False) -> Rows:
        rows = self._partitions[span.partition]
        query = partial(rows.between, span, limit + 1, last_first=last_first)
        found = self._accesses.read(f"parts.{call}", query)
        return found[:limit], len(found) > limit

    def _delete(self, call: str, keys: Sequence[PartKey]) -> None:
        def delete(key: PartKey) -> None:
            if self.there(key):
                del self._partitions[key[0]][key[1]]

        for key in keys:
            self._accesses.write(f"parts.{call}", partial(delete, key))

    def _each(self, call: Callable[[T], R], values: Sequence[T]) -> list[R]:
        return list(map(call, values))
