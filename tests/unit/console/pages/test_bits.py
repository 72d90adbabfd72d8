"""What is drawn of a node: paths that show each bit, words that say the same."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.console.pages.picture import SIDE, Drawing, Square, done_parts, items, marks
from fanin.domain.batch import Batch
from fanin.domain.picture import Cell, ItemState, Picture, PictureItem

FULL = 2**64 - 1
CHECKERBOARD = sum(1 << y * 8 + x for y in range(8) for x in range(8) if (x + y) % 2)
BATCH = Batch(7, b"salt", 0, 0, 10**9, 60, 60)
RECTANGLE = re.compile(r"M(\d) (\d)H(\d)V(\d)H(\d)")


def rectangles(path: str) -> Iterator[tuple[int, int, int, int]]:
    """Left, top, right and bottom of each rectangle of a path, of which nothing else may be part."""
    assert not RECTANGLE.sub("", path)
    for found in RECTANGLE.finditer(path):
        x, y, right, bottom, back = map(int, found.groups())
        assert x == back
        yield x, y, right, bottom


def filled(path: str) -> list[int]:
    """The bits that a path fills, each as often as it does."""
    return sorted(
        y * SIDE + x
        for left, top, right, bottom in rectangles(path)
        for y in range(top, bottom)
        for x in range(left, right)
    )


def cell(at: int = 0, *, parts: int = 64, word: int | None = FULL, done: int = 0, **other: int) -> Cell:
    """A cell of words of level 0."""
    start = at * 4096
    return Cell(at, start, start + parts * 64, parts, done, other.get("most", parts * 64), word=word)


def picture(*cells: Cell, level: int = 2, number: int = 0, root: int = 2, size: int = 64**3) -> Drawing:
    start = number * 64 ** (level + 1)
    return Drawing(Picture(BATCH, level, number, root, size, start, size, cells=cells))


def one(found: Cell) -> Square:
    return picture(found).squares[0]


class TestMarks:
    @given(st.integers(0, FULL))
    def test_each_bit_is_filled_once(self, mask):
        assert filled(marks(mask)) == [at for at in range(64) if mask >> at & 1]

    def test_neighbours_are_one_rectangle(self):
        assert marks(FULL) == "M0 0H8V8H0"
        assert marks(0) == ""
        assert marks(0b1110) == "M1 0H4V1H1"
        assert marks(0x0F0F) == "M0 0H4V2H0"

    def test_the_longest_path_is_that_of_a_checkerboard(self):
        assert len(marks(CHECKERBOARD)) == 32 * len("M1 0H2V1H1")


@pytest.mark.parametrize(
    ("found", "done"),
    [
        (cell(parts=4, word=0b0101), 0b1010),  # the clear bits of a word that was read
        (cell(parts=4, word=None, done=256), 0b1111),  # all items are done, whether it was read or not
        (cell(word=None), 0),  # it was not read
    ],
)
def test_which_parts_are_done(found, done):
    assert done_parts(found) == done


class TestSquares:
    def test_are_64_whatever_exists(self):
        drawing = picture(cell(0), cell(1, parts=3))

        assert len(drawing.squares) == 64
        assert [square.kind for square in drawing.squares[:3]] == ["cell", "cell", "cell none"]
        assert filled(drawing.squares[1].ground) == [0, 1, 2]
        assert drawing.squares[2] == Square("cell none")

    @pytest.mark.parametrize(
        ("done", "most", "failed", "more", "told"),
        [
            (0, 4096, 0, True, "Items 0 to 4,095: at least 0 % done"),
            (1, 4096, 0, True, "Items 0 to 4,095: more than 0 % done"),
            (1, 1, 0, True, "Items 0 to 4,095: < 0.1 % done"),
            (1024, 4096, 0, True, "Items 0 to 4,095: at least 25.0 % done"),
            (1024, 1024, 0, False, "Items 0 to 4,095: 25.0 % done; none failed"),
            (1024, 1024, 3, False, "Items 0 to 4,095: 25.0 % done; 3 failed"),
            (4095, 4096, 3, True, "Items 0 to 4,095: more than 99.9 % done; at least 3 failed"),
            (4096, 4096, 0, False, "Items 0 to 4,095: all done; none failed"),
        ],
    )
    def test_say_what_is_known(self, done, most, failed, more, told):
        square = one(Cell(0, 0, 4096, 64, done, most, failed=failed, failed_more=more, word=FULL))

        assert square.title == told
        assert bool(square.corner) == bool(failed)

    def test_that_were_not_read_are_hatched(self):
        square = one(cell(word=None))

        assert (square.kind, square.cell.unread, square.title) == (
            "cell unread",
            True,
            "Items 0 to 4,095: not read",
        )
        assert square.sign
        assert not square.done

    def test_that_were_not_read_and_are_done_all_the_same_are_filled(self):
        square = one(cell(word=None, done=4096))

        assert (square.kind, square.cell.unread, square.sign) == ("cell", False, "")
        assert square.done == marks(FULL)

    def test_grow_stronger_with_the_share_that_is_done(self):
        shades = [float(one(cell(done=done)).shade) for done in range(0, 4097, 512)]

        assert shades == sorted(set(shades))

    def test_zoom_one_level_down(self):
        zoom = picture(cell(3), level=2).squares[0].zoom

        assert zoom is not None
        assert (zoom.level, zoom.number, zoom.text) == (1, 3, "items 12,288 to 16,383")


class TestItems:
    DRAWING = Drawing(
        Picture(
            BATCH, 0, 0, 1, 70, 0, 5,
            items=tuple(
                PictureItem(at, f"id:{at}", state, 1_000 if state is ItemState.LEASED else None)
                for at, state in enumerate(ItemState)
            ),
        )
    )  # fmt: skip

    def test_have_a_form_for_each_state(self):
        squares = self.DRAWING.squares[:5]

        # Done and pending ones have no sign: they are full, and empty
        assert [square.kind for square in squares] == [f"item {state}" for state in ItemState]
        signs = [square.sign for square in squares]
        assert [bool(sign) for sign in signs] == [False, True, True, True, False]
        assert len({*signs}) == 4

    def test_say_their_state(self):
        titles = [square.title for square in self.DRAWING.squares[:5]]

        assert titles == [
            "Item 0: done",
            "Item 1: failed",
            "Item 2: held",
            "Item 3: leased, until 1970-01-01 00:00:01 UTC",
            "Item 4: pending",
        ]

    def test_are_counted_by_state(self):
        assert [text for _, text in self.DRAWING.legend] == [
            "Done: 1",
            "Failed: 1",
            "Held: 1",
            "Leased: 1",
            "Pending: 1",
        ]
        assert self.DRAWING.failed == 1
        assert not self.DRAWING.failed_more


class TestDrawing:
    def test_leads_from_the_root_to_the_node(self):
        drawing = picture(cell(), level=1, number=65, root=4, size=10**9)

        assert [(node.level, node.number, node.text) for node in drawing.path] == [
            (None, None, "all 1,000,000,000 items"),
            (3, 0, "items 0 to 16,777,215"),
            (2, 1, "items 262,144 to 524,287"),
            (1, 65, "items 266,240 to 270,335"),
        ]
        assert drawing.up == drawing.path[-2]

    def test_has_no_way_up_from_the_root(self):
        drawing = picture(cell(), level=2, root=2)

        assert drawing.up is None
        assert len(drawing.path) == 1

    def test_says_how_much_a_square_and_a_mark_are(self):
        assert picture(level=4).sizes == (64**4, 64**3)
        assert picture(level=1).sizes == (64, 1)
        assert picture(level=0).sizes == (1, 0)

    def test_is_as_high_as_its_rows(self):
        assert picture(*map(cell, range(64))).extent == "-0.2 -0.2 70 70"
        assert picture(*map(cell, range(9))).extent == "-0.2 -0.2 34.8 26"

    def test_puts_squares_row_by_row(self):
        drawing = picture(*map(cell, range(64)))

        assert [drawing.place(at) for at in (0, 1, 8, 63)] == ["0 0", "8.8 0", "0 8.8", "61.6 61.6"]

    def test_draws_few_squares_large(self):
        columns = [picture(*map(cell, range(count))).columns for count in (1, 2, 16, 17, 25, 36, 49, 50, 64)]

        assert columns == [4, 4, 4, 5, 5, 6, 7, 8, 8]

    def test_has_a_legend_of_what_it_shows(self):
        read, unread = picture(cell()), picture(cell(), cell(1, word=None))

        assert len(read.legend) == 2
        assert unread.legend[-1][1] == "Not read. Zoom in to see it."

    def test_sums_failures_up(self):
        cells = (
            Cell(0, 0, 64, 64, 64, 64, failed=2, failed_more=False, word=0),
            Cell(1, 64, 128, 64, 0, 64, failed=1, failed_more=True, word=FULL),
        )

        assert picture(*cells, level=1).failed == 3
        assert picture(*cells, level=1).failed_more
        assert not picture(cells[0], level=1).failed_more


def test_a_range_of_one_item_is_an_item():
    assert (items(4, 5), items(4, 6)) == ("item 4", "items 4 to 5")
