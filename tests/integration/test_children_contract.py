"""The contract of children: an item has one, and its row and its note are written together."""

from __future__ import annotations

from dataclasses import replace

from fanin.app.ports.batches import Adoption, ItemPlace
from fanin.domain.batch import State
from tests.integration.conftest import Stores
from tests.integration.given import NOW, new_batch, put, row_of

ITEM = ItemPlace(8, 3)


class TestChildren:
    def test_an_item_has_one_child(self, stores: Stores) -> None:
        first, second = new_batch(9), new_batch(10)

        assert stores.batches.child_of(ITEM) is None
        assert stores.batches.create_child(first, ITEM) == Adoption(first, 9)
        assert stores.batches.create_child(second, ITEM) == Adoption(None, 9)

        assert stores.batches.child_of(ITEM) == 9
        assert stores.batches.read([9, 10]) == {9: first}

    def test_items_and_batches_are_kept_apart(self, stores: Stores) -> None:
        for child, place in ((9, ITEM), (10, ItemPlace(8, 30)), (11, ItemPlace(80, 3))):
            assert stores.batches.create_child(new_batch(child), place).child == child
        assert stores.batches.child_of(ITEM) == 9

    def test_creating_the_same_child_again_gives_its_row(self, stores: Stores) -> None:
        first = new_batch(9)
        stores.batches.create_child(first, ITEM)
        stores.batches.allocate(9, 5, activity=None, room=None)

        again = stores.batches.create_child(first, ITEM)

        assert again == Adoption(row_of(stores, 9), 9)
        assert again.row is not None
        assert again.row.items == 5

    def test_an_id_is_taken_once(self, stores: Stores) -> None:
        batch = put(stores)

        assert stores.batches.create_child(replace(batch, salt=bytes(16)), ITEM) == Adoption(None, None)
        assert stores.batches.child_of(ITEM) is None

    def test_a_child_takes_the_place_of_the_one_that_is_named(self, stores: Stores) -> None:
        first, second, third = (new_batch(batch_id) for batch_id in (9, 10, 11))
        stores.batches.create_child(first, ITEM)

        assert stores.batches.create_child(second, ITEM, instead_of=9) == Adoption(second, 10)
        assert stores.batches.create_child(third, ITEM, instead_of=9) == Adoption(None, 10)

        assert stores.batches.child_of(ITEM) == 10
        # The write of the first comes again, after all that
        assert stores.batches.create_child(first, ITEM) == Adoption(first, 9)
        assert stores.batches.child_of(ITEM) == 10

    def test_a_batch_that_is_created_closed_is_looked_at_like_one_that_was_closed(
        self, stores: Stores
    ) -> None:
        put(stores, 9, state=State.CLOSED, closed_at=NOW, items=3)
        minutes = 60_000

        assert list(stores.batches.due(NOW + 15 * minutes)) == []
        assert list(stores.batches.due(NOW + 15 * minutes + 1)) == [9]
