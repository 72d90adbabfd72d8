"""What every listing promises: only its own cursors."""

from __future__ import annotations

import base64
import json

import pytest

from fanin.app.ports.parts import FailureRow
from fanin.domain.batch import State
from fanin.errors import InvalidRequest

from .conftest import Stores
from .given import LATER, put


def cursor_of(*parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


class TestCursors:
    MALFORMED = (
        "",
        "x",
        "☂",
        "====",
        "a b",
        "A" * 10_000,
        cursor_of(),
        cursor_of("batches open"),
        cursor_of("batches open", -1),
        cursor_of("batches open", 1.5),
        cursor_of("batches open", True),
        cursor_of("batches open", "1"),
        cursor_of("batches open", 1, 2),
        cursor_of("batches open", 1, 2, 2**53),
        base64.urlsafe_b64encode(b"7").decode(),
        base64.urlsafe_b64encode(b'{"batches open": 1}').decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    )

    @pytest.mark.parametrize("cursor", MALFORMED)
    def test_a_malformed_cursor_is_refused(self, stores: Stores, cursor: str) -> None:
        with pytest.raises(InvalidRequest, match="cursor"):
            stores.batches.page(State.OPEN, cursor=cursor)
        with pytest.raises(InvalidRequest, match="cursor"):
            stores.batches.page_of_user_key("k", cursor=cursor)
        with pytest.raises(InvalidRequest, match="cursor"):
            stores.parts.failures(8, cursor=cursor)

    def test_a_cursor_is_good_for_its_own_listing_only(self, stores: Stores) -> None:
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
