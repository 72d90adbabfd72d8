"""A table that also fits a narrow terminal, and names with their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table

_GAP: Final = 2
"""Columns of the screen between two columns of a table."""
_LEGIBLE: Final = 24
"""A word of up to so many characters is kept on one line; longer ones, such as item ids, may be folded."""


class Listing:
    """Rows under the names of their columns; a column that is empty in every row is left out.

    Where the screen is too narrow for that, a row has a line for each of its values.

    Args:
        columns: their names.
        right: those that are aligned to the right.
    """

    def __init__(self, columns: Sequence[str], right: Sequence[str] = ()) -> None:
        self._columns = columns
        self._right = right
        self._rows: list[tuple[str, ...]] = []

    def add_row(self, *cells: str | None) -> None:
        """Add a row with a cell for each column."""
        self._rows.append(tuple(cell or "" for cell in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = [n for n in range(len(self._columns)) if not self._rows or any(row[n] for row in self._rows)]
        if len(shown) == 1 or self._width(shown) <= options.max_width:
            yield self._table(shown)
            return
        for row in self._rows:
            yield facts((self._columns[n], row[n]) for n in shown)
            yield ""

    def _width(self, shown: Sequence[int]) -> int:
        """The least width at which the table is legible."""
        words = ([self._columns[n], *(word for row in self._rows for word in row[n].split())] for n in shown)
        return sum(min(_LEGIBLE, max(map(len, of))) + _GAP for of in words)

    def _table(self, shown: Sequence[int]) -> RenderableType:
        made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for n in shown:
            name = self._columns[n]
            made.add_column(name, justify="right" if name in self._right else "left", overflow="fold")
        for row in self._rows:
            made.add_row(*(row[n] for n in shown))
        return made


def facts(pairs: Iterable[tuple[str, object]]) -> Table:
    """Names with their values, one a line; empty values are left out."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value not in (None, ""):
            made.add_row(name, str(value))
    return made
