"""What every listing promises: only its own cursors."""

from collections.abc import Callable

import pytest

from fanin.adapters import cursors
from fanin.app.ports.parts import FailureRow
from fanin.domain.batch import State
from fanin.errors import InvalidRequest

from .given import LATER, put


class TestCursors:
    def test_a_malformed_cursor_is_refused(self, stores):
        by_key = cursors.listing_of("batches of", "k")
        listings: dict[str, Callable[[str], object]] = {
            "batches open": lambda cursor: stores.batches.page(State.OPEN, cursor=cursor),
            by_key: lambda cursor: stores.batches.page_of_user_key("k", cursor=cursor),
            "children of 8": lambda cursor: stores.batches.page_of_parent(8, cursor=cursor),
            "failures of 8": lambda cursor: stores.parts.failures(8, cursor=cursor),
        }
        for listing, read in listings.items():
            short, long = cursors.encode(listing), cursors.encode(listing, 1, 2)
            for cursor in ("", "x", short, long, cursors.encode(listing, "1")):
                with pytest.raises(InvalidRequest, match="cursor"):
                    read(cursor)

    def test_a_cursor_is_good_for_its_own_listing_only(self, stores):
        for batch_id in range(3):
            put(stores, batch_id, user_key="k")
        batches = stores.batches.page(State.OPEN, limit=1).cursor
        mine = stores.batches.page_of_user_key("k", limit=1).cursor
        notes = [FailureRow(n, f"8:g:{n}", "") for n in range(3)]
        stores.parts.put_failures(8, notes, expires_at=LATER)
        failures = stores.parts.failures(8, limit=1)[1]

        for use in (
            lambda: stores.batches.page(State.CLOSED, cursor=batches),
            lambda: stores.batches.page(State.OPEN, cursor=failures),
            lambda: stores.batches.page(State.OPEN, cursor=mine),
            lambda: stores.batches.page_of_user_key("l", cursor=mine),
            lambda: stores.batches.page_of_user_key("k", cursor=batches),
            lambda: stores.parts.failures(9, cursor=failures),
            lambda: stores.parts.failures(8, cursor=batches),
        ):
            with pytest.raises(InvalidRequest, match="cursor"):
                use()
