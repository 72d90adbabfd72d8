"""The bit picture: what is drawn of one node of a summary tree, as words, figures and paths of an SVG.

Eight by eight squares, one for each part of the node. A square of words shows the 64 bits of its own word as
eight by eight marks. So 4,096 marks come from at most 66 rows, each with its share of the batch's items. On
level 0 a square is one item with its state.

The structure of a picture never changes, only attributes of its elements do: a part that does not exist yet
has its place. So a later picture takes the place of an earlier one without flicker.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from starlette.requests import Request

from fanin.console.pages.heading import BatchRequest, Heading, shown_above
from fanin.console.pages.progress import Row
from fanin.console.rendering import day, number, percent
from fanin.console.state import Console, LivePage, Part, live_routes, natural
from fanin.domain.batch import Batch, Mode
from fanin.domain.picture import Cell, ItemState, Picture, PictureItem
from fanin.domain.tree import Tree, runs_of_masks
from fanin.errors import InvalidRequest

SIDE: Final = 8
"""Squares in a row of the picture at most, and marks in a row of a square."""
_FEWEST: Final = 4
"""Squares in a row at least."""
PITCH: Final = 8.8
"""From one square to the next, where a mark is 1 wide."""
_GAP: Final = PITCH - SIDE
_EDGE: Final = 0.2
"""Room for the frames of the outer squares."""
_KEY: Final = 64
"""Characters of a key that are shown of each of several items."""
_FAINT: Final = 0.1
_STRONG: Final = 0.26
"""Opacity of the ground of a square where nothing is done, and where everything is."""
_TREE: Final = Tree()
_SQUARE: Final = "M0 0H8V8H0"
_HATCH: Final = "M0 2L2 0M0 4L4 0M0 6L6 0M0 8L8 0M2 8L8 2M4 8L8 4M6 8L8 6"
_CORNER: Final = "M5.2 0H8V2.8Z"
_SIGNS: Final = {
    ItemState.FAILED: "M2 2L6 6M6 2L2 6",
    ItemState.HELD: "M.8 4L4 .8M.8 7.2L7.2 .8M4 7.2L7.2 4",
    ItemState.LEASED: "M4 2A2 2 0 1 1 4 6A2 2 0 1 1 4 2Z",
}
"""What is drawn on an item beside its colour, so that nobody has to tell states apart by colour alone."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree that has an address.

    Attributes:
        level: of the node; None for the root, whichever level that is.
        number: of the node on its level; None for the root.
        text: which items are below it.
    """

    level: int | None
    number: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Square:
    """One square of a picture.

    Attributes:
        kind: its classes.
        title: what it shows, in words; empty where there is no part.
        ground: path of the marks that exist.
        shade: opacity of the ground, which grows with the share that is done.
        done: path of the marks that are done.
        sign: path of what is drawn over them.
        corner: path of the corner that says that items failed.
        zoom: the node one level down; None on level 0, and where there is no part.
        cell: what is known of the part; None on level 0.
        item: what is known of the item; None above level 0.
    """

    kind: str
    title: str = ""
    ground: str = ""
    shade: str = "0"
    done: str = ""
    sign: str = ""
    corner: str = ""
    zoom: Node | None = None
    cell: Cell | None = None
    item: PictureItem | None = None


_HALF: Final = Square("cell", ground=_SQUARE, shade="0.2", done="M0 0H8V4H4V6H0")
_SOME_FAILED: Final = Square("cell", ground=_SQUARE, shade="0.2", corner=_CORNER)
_UNREAD: Final = Square("cell unread", ground=_SQUARE, shade=str(_FAINT), sign=_HATCH)


def _sample(state: ItemState) -> Square:
    return Square(f"item {state}", ground=_SQUARE, shade="1", sign=_SIGNS.get(state, ""))


@dataclass(frozen=True)
class Drawing:
    """A picture as it is drawn.

    Attributes:
        picture: what was read.
    """

    picture: Picture

    @cached_property
    def squares(self) -> tuple[Square, ...]:
        """The 64 squares, row by row."""
        picture = self.picture
        drawn = [*(_of_cell(picture, cell) for cell in picture.cells), *map(_of_item, picture.items)]
        nothing = Square("cell none" if picture.level else "item none")
        return (*drawn, *(nothing for _ in range(SIDE * SIDE - len(drawn))))

    @property
    def parts(self) -> int:
        """How many squares have a part."""
        return max(len(self.picture.cells), len(self.picture.items))

    @property
    def columns(self) -> int:
        """Squares in a row: few of them are drawn large."""
        return next(count for count in range(_FEWEST, SIDE + 1) if count == SIDE or count**2 >= self.parts)

    @property
    def extent(self) -> str:
        """Where the rows of squares are that have parts, as the view box of the SVG."""
        rows = -(-self.parts // self.columns)
        wide, high = (count * PITCH - _GAP + 2 * _EDGE for count in (self.columns, rows))
        return f"{-_EDGE} {-_EDGE} {wide:g} {high:g}"

    def place(self, at: int) -> str:
        """Where a square is."""
        return f"{at % self.columns * PITCH:g} {at // self.columns * PITCH:g}"

    @cached_property
    def path(self) -> tuple[Node, ...]:
        """The nodes from the root down to the one that is shown, which is the last."""
        picture = self.picture
        root = Node(None, None, f"all {number(picture.size)} items")
        below = (
            _node(level, picture.number // _TREE.width ** (level - picture.level), picture.size)
            for level in range(picture.root_level - 1, picture.level - 1, -1)
        )
        return (root, *below)

    @property
    def up(self) -> Node | None:
        """The node above the one that is shown; None at the root."""
        return self.path[-2] if len(self.path) > 1 else None

    @property
    def sizes(self) -> tuple[int, int]:
        """How many items a square stands for, and how many a mark in it; 0 where squares have no marks."""
        level = self.picture.level
        return (_TREE.span(level - 1), _TREE.span(level - 2)) if level else (1, 0)

    @property
    def failed(self) -> int:
        """At least so many of its items failed."""
        picture = self.picture
        return sum(cell.failed for cell in picture.cells) + self.states[ItemState.FAILED]

    @property
    def failed_more(self) -> bool:
        """Whether more may have failed."""
        return any(cell.failed_more for cell in self.picture.cells)

    @cached_property
    def states(self) -> dict[ItemState, int]:
        """On level 0: state → how many items have it."""
        found = [item.state for item in self.picture.items]
        return {state: found.count(state) for state in ItemState}

    @property
    def legend(self) -> tuple[tuple[Square, str], ...]:
        """What the squares look like, and what that means."""
        if not self.picture.level:
            return tuple(
                (_sample(state), f"{state.capitalize()}: {count}") for state, count in self.states.items()
            )
        below = ": each item below them is" if self.picture.level > 1 else ""
        half = f"Filled marks are done{below}. The more is done, the stronger the colour of the square."
        found = [(_HALF, half), (_SOME_FAILED, "Items in it failed. They count as done; held ones do not.")]
        if any(cell.unread for cell in self.picture.cells):
            found.append((_UNREAD, "Not read. Zoom in to see it."))
        return tuple(found)


def marks(mask: int) -> str:
    """A path of marks: a rectangle for those side by side, over all rows below that are alike."""
    rows = [mask >> SIDE * y & 0xFF for y in range(SIDE)]
    drawn: list[str] = []
    y = 0
    while y < SIDE:
        below = next((after for after in range(y, SIDE) if rows[after] != rows[y]), SIDE)
        drawn += (f"M{x} {y}H{stop}V{below}H{x}" for x, stop in runs_of_masks([(0, rows[y])]))
        y = below
    return "".join(drawn)


def done_parts(cell: Cell) -> int:
    """Which parts of a cell are known to be done, a bit that is 1 for each."""
    existing = (1 << cell.parts) - 1
    if cell.done_min == cell.size:
        return existing
    return 0 if cell.word is None else existing & ~cell.word


def items(start: int, stop: int) -> str:
    """A range of items, in words."""
    if stop - start == 1:
        return f"item {number(start)}"
    return f"items {number(start)} to {number(stop - 1)}"


def _node(level: int, index: int, size: int) -> Node:
    start = index * _TREE.span(level)
    return Node(level, index, items(start, min(start + _TREE.span(level), size)))


def _of_cell(picture: Picture, cell: Cell) -> Square:
    share = cell.done_min / cell.size
    return Square(
        "cell unread" if cell.unread else "cell",
        _told(cell),
        marks((1 << cell.parts) - 1),
        f"{_FAINT + (_STRONG - _FAINT) * share:.2g}",
        marks(done_parts(cell)),
        _HATCH if cell.unread else "",
        _CORNER if cell.failed else "",
        Node(picture.level - 1, cell.number, items(cell.start, cell.stop)),
        cell=cell,
    )


def _of_item(item: PictureItem) -> Square:
    until = "" if item.leased_until is None else f", until {day(item.leased_until)}"
    key = f" ({item.key[:_KEY]}{'…' if item.key[_KEY:] else ''})" if item.key else ""
    title = f"Item {number(item.ordinal)}{key}: {item.state}{until}"
    return replace(_sample(item.state), title=title, item=item)


def _share(cell: Cell) -> str:
    share = percent(cell.done_min, cell.size)
    if cell.done_min == cell.done_max:
        return share
    return {"<": "more than 0 %", ">": "more than 99.9 %"}.get(share[0], f"at least {share}")


def _told(cell: Cell) -> str:
    """What is known of a cell, in words."""
    where = items(cell.start, cell.stop).capitalize()
    if cell.unread:
        return f"{where}: not read"
    done = "all done" if cell.done_min == cell.size else f"{_share(cell)} done"
    if cell.failed:
        return f"{where}: {done}; {'at least ' if cell.failed_more else ''}{number(cell.failed)} failed"
    return f"{where}: {done}" if cell.failed_more else f"{where}: {done}; none failed"


_PARTS: Final = ("path", "drawn", "figures", "table")


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """What is shown of a batch.

    Attributes:
        batch: its row.
        drawing: its picture; None of an estimated batch, which has none.
    """

    batch: Batch
    drawing: Drawing | None

    @property
    def facts(self) -> tuple[object, ...]:
        """What the picture shows; equal as long as nothing changes."""
        picture = None if self.drawing is None else self.drawing.picture
        words = () if picture is None else (picture.size, picture.cells, picture.items)
        return (self.batch.state, *words)


def shown(console: Console, batch_id: int, level: int | None = None, number: int = 0) -> ShownPicture:
    """Read one node of a batch: one call, and at most 66 rows.

    Raises:
        InvalidRequest: there is no such node.
    """
    ledger = console.fanin.ledger
    try:
        picture = ledger.picture(batch_id, level=level, number=number)
    except InvalidRequest:
        batch = ledger.status(batch_id, brief=True).batch
        if batch.mode is not Mode.ESTIMATED:
            raise
        return ShownPicture(batch, None)
    return ShownPicture(picture.batch, Drawing(picture))


def parts_of(what: ShownPicture) -> dict[str, Part]:
    """The live parts of a picture, which stand in the macro ``picture``."""
    return {f"picture-{name}": ("picture_parts.html", name, what) for name in _PARTS}


def picture(request: Request) -> LivePage:
    """Read the page of the node that the address names by its level, none for the root, and its number."""
    asked = BatchRequest(request)
    level, number = (natural(name, asked.query.get(name)) for name in ("level", "number"))
    what = shown(asked.console, asked.batch_id, level, number or 0)
    # What the picture has read is enough for a heading: how far the whole batch is would take as much again.
    values = shown_above(Heading(Row(what.batch, None), asked.console.now()), "picture")
    over = what.batch.state.terminal
    return LivePage("picture.html", parts_of(what), what.facts, over, {**values, "shown": what})


ROUTES: Final = live_routes("/batches/{batch_id}/picture", picture)
