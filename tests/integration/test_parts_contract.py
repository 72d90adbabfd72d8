"""What every store of parts promises: notes of failed items."""

from __future__ import annotations

from fanin.app.ports.batches import Activity, FailureRow
from fanin.domain.ids import MAX_ITEMS

from .conftest import Stores
from .given import LATER, NOW, put


class TestFailures:
    def test_notes_are_listed_by_ordinal(self, stores: Stores) -> None:
        ordinals = [MAX_ITEMS - 1, 10, 9, 0, 100, *range(1000, 1040)]
        notes = {n: FailureRow(n, f"8:g:{n}", f"reason {n} ☂") for n in ordinals}
        stores.parts.put_failures(8, notes.values(), expires_at=LATER)
        stores.parts.put_failures(9, [FailureRow(1, "9:g:1", "")], expires_at=LATER)

        for limit in (1, 7, 45, 100):
            listed, cursor = stores.parts.failures(8, limit=limit)
            while cursor is not None:
                page, cursor = stores.parts.failures(8, limit=limit, cursor=cursor)
                assert len(page) <= limit
                listed += page
            assert listed == [notes[n] for n in sorted(notes)]

    def test_the_last_note_of_an_item_stays(self, stores: Stores) -> None:
        notes = [FailureRow(n % 30, f"8:g:{n % 30}", f"try {n}") for n in range(60)]
        stores.parts.put_failures(8, notes, expires_at=LATER)
        stores.parts.put_failures(8, [FailureRow(0, "8:g:0", "again")], expires_at=LATER)

        reasons = [note.reason for note in stores.parts.failures(8)[0]]

        assert reasons == ["again", *(f"try {n}" for n in range(31, 60))]

    def test_reasons_are_those_of_the_last_notes(self, stores: Stores) -> None:
        notes = [FailureRow(n, f"8:g:{n}", f"why {n} ☂") for n in (3, 9, MAX_ITEMS - 1)]
        stores.parts.put_failures(8, notes, expires_at=LATER)
        stores.parts.put_failures(8, [FailureRow(3, "8:g:3", "")], expires_at=LATER)
        stores.parts.put_failures(9, [FailureRow(4, "9:g:4", "of another batch")], expires_at=LATER)

        asked = [MAX_ITEMS - 1, 3, 4]
        assert stores.parts.reasons(8, asked) == {3: "", MAX_ITEMS - 1: f"why {MAX_ITEMS - 1} ☂"}
        assert stores.parts.reasons(8, []) == {}

    def test_idempotency_keys_are_no_notes(self, stores: Stores) -> None:
        batch = put(stores)
        stores.batches.allocate_once(batch, 4, "zzz", activity=Activity(NOW, NOW))

        assert stores.parts.failures(8) == ([], None)

    def test_no_notes_is_no_write(self, stores: Stores) -> None:
        stores.parts.put_failures(8, [], expires_at=LATER)

        assert stores.parts.failures(8) == ([], None)
