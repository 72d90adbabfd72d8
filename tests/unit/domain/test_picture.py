"""The values of a bit picture."""

import pytest

from fanin.domain.batch import Batch
from fanin.domain.picture import Cell, ItemState, Picture, PictureItem


def test_a_cell_has_as_many_items_as_lie_between_its_bounds():
    assert Cell(3, 12, 15, parts=3, done_min=0, done_max=3).size == 3
    cells = [Cell(3, 12, 15, 3, done, 3, word=word) for done, word in ((0, None), (3, None), (0, 7))]
    assert [cell.unread for cell in cells] == [True, False, False]


@pytest.mark.parametrize("state", ItemState)
def test_an_item_is_done_also_if_it_has_failed(state):
    assert state.done == (state in {ItemState.DONE, ItemState.FAILED})


def test_what_is_done_below_a_node_is_the_sum_of_its_parts():
    batch = Batch(7, b"salt", 0, 0, 10**9, 60, 60)
    cells = (Cell(0, 0, 16, 4, 3, 16), Cell(1, 16, 32, 4, 16, 16))
    above = Picture(batch, 2, 0, 2, 32, 0, 32, cells=cells)
    items = tuple(PictureItem(n, f"7:g:{n}", state) for n, state in enumerate(ItemState))
    below = Picture(batch, 0, 0, 2, 32, 0, 5, items=items)

    assert (above.done_min, above.done_max) == (19, 32)
    assert (below.done_min, below.done_max) == (2, 2)
