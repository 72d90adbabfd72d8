"""Tables, and names with their values: drawn in a terminal, one record a line in a pipe.

In a pipe fields are separated by tabs. A table has all its columns there, in the order of its header line,
and numbers without separators. ``40+`` stands for 40 or more. A backslash, a tab, a line end or another
control character within a field is escaped as in C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fanin.domain.limits import TURNING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult

_GAP: Final = 2
"""Columns of the screen between two columns of a table."""
_LEGIBLE: Final = 24
"""In a column of texts a word of up to so many characters is kept on one line; longer ones may be folded."""
_CONTROL: Final = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029{TURNING}\ud800-\udfff]")
"""What ends a line somewhere, moves the cursor, turns the direction of a text, or has no form in UTF-8."""
_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


class Value(NamedTuple):
    """A value that a terminal shows in another way than a pipe.

    Attributes:
        shown: for people.
        plain: for programs.
    """

    shown: str
    plain: str


Cell: TypeAlias = "str | int | Value | None"


def number(count: int, *, or_more: bool = False) -> Value:
    """A number of things, perhaps a lower bound."""
    return Value(f"at least {count:,}" if or_more else f"{count:,}", f"{count}+" if or_more else str(count))


def field(cell: object) -> str:
    """A value as one field of a line."""
    text = cell.plain if isinstance(cell, Value) else "" if cell is None else str(cell)
    text = text.replace("\\", _ESCAPES["\\"])
    return _CONTROL.sub(lambda found: _ESCAPES.get(found[0], _escaped(found[0])), text)


def shown(cell: object) -> str:
    """A value for a terminal, which obeys no control characters that somebody put into a name or a reason."""
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    text = cell.shown if isinstance(cell, Value) else "" if cell is None else str(cell)
    spaced = text.expandtabs(4)  # a table cannot know where a terminal's tab stops are
    return _CONTROL.sub(lambda found: found[0] if found[0] == "\n" else _escaped(found[0]), spaced)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"  # noqa: PLR2004 - two digits


class Table:
    """Rows under the names of their columns.

    A terminal leaves out a column that is empty in every row. Where it is too narrow for the others, a row
    has a line for each of its values.

    Args:
        columns: their names.
        right: those that are aligned to the right.
        empty: what a terminal shows if there are no rows; the header by default.
    """

    def __init__(self, *columns: str, right: Sequence[str] = (), empty: str = "") -> None:
        self.empty = empty
        self._columns = columns
        self._right = right
        self._cells: list[tuple[Cell, ...]] = []

    def __len__(self) -> int:
        return len(self._cells)

    def add_row(self, *cells: Cell) -> None:
        """Add a row with a cell for each column."""
        self._cells.append(cells)

    def lines(self) -> Iterator[str]:
        """A header and a line for each row, for programs."""
        yield "\t".join(name.replace(" ", "_") for name in self._columns)
        for row in self._cells:
            yield "\t".join(map(field, row))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.empty and not self._cells:
            yield self.empty
            return
        rows = [tuple(map(shown, row)) for row in self._cells]
        named = [n for n in range(len(self._columns)) if not rows or any(row[n] for row in rows)]
        least = sum(self._least(rows, n) + _GAP for n in named)
        if len(named) == 1 or least <= options.max_width:
            yield self._table(rows, named)
            return
        for row in rows:
            yield FactSheet((self._columns[n], row[n]) for n in named)
            yield ""

    def _least(self, rows: Sequence[tuple[str, ...]], n: int) -> int:
        """The least width of a column. What has no spaces, such as an id, is never folded."""
        words = [self._columns[n], *(word for row in rows for word in row[n].split())]
        longest = max(map(len, words))
        return longest if _whole(rows, n) else min(_LEGIBLE, longest)

    def _table(self, rows: Sequence[tuple[str, ...]], named: Sequence[int]) -> RenderableType:
        from rich import box
        from rich.table import Table

        made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for n in named:
            name = self._columns[n]
            justify: JustifyMethod = "right" if name in self._right else "left"
            made.add_column(name, justify=justify, overflow="fold", no_wrap=_whole(rows, n))
        for row in rows:
            made.add_row(*(row[n] for n in named))
        return made


def _whole(rows: Sequence[tuple[str, ...]], n: int) -> bool:
    """Whether no value of a column has a space at which it can be folded."""
    return not any(" " in row[n] for row in rows)


class FactSheet:
    """Names with their values, one a line; empty values are left out.

    Args:
        pairs: each name with its value.
    """

    def __init__(self, pairs: Iterable[tuple[str, object]]) -> None:
        self._pairs = [(name, value) for name, value in pairs if value not in (None, "")]

    def lines(self) -> Iterator[str]:
        """A line for each, for programs."""
        return (f"{name.replace(' ', '_')}\t{field(value)}" for name, value in self._pairs)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table

        made = Table(box=None, show_header=False, pad_edge=False)
        made.add_column(no_wrap=True)
        made.add_column(overflow="fold")
        for name, value in self._pairs:
            if text := shown(value):
                made.add_row(name, text)
        yield made
