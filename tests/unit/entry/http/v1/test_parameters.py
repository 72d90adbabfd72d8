"""Pages of listings: what a query may ask for, and what the use case gets."""

from __future__ import annotations

import inspect
import re

import pytest

from fanin.app.api import Buffers, Diagnostics, Directory, Frames, Ledger, Redrives, Routing, Scatters
from fanin.domain.limits import MAX_PAGE, MAX_REPLIES
from fanin.entry.http.table import ROUTES
from fanin.entry.http.v1.parameters import KEY, paged

LISTINGS = {
    "listBatches": Ledger.list,
    "listAttention": Diagnostics.attention,
    "listMissing": Ledger.missing,
    "listResults": Ledger.results,
    "listFailures": Ledger.failures,
    "listRedrives": Redrives.redrives,
    "listReplies": Scatters.replies,
    "listMissingRecipients": Scatters.missing_recipients,
    "listFailedRecipients": Scatters.failed_recipients,
    "getFrame": Frames.status,
    "listBuffers": Buffers.list,
    "listTopic": Directory.page,
    "listRoutes": Routing.page,
}


def test_a_page_has_a_bound_and_a_default() -> None:
    assert paged()["limit"].schema == {
        "type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 100,
    }  # fmt: skip
    assert paged(5, 3)["limit"].schema["maximum"] == 5
    assert paged(5, 3)["limit"].schema["default"] == 3


def test_every_listing_is_a_page_of_a_use_case() -> None:
    assert {route.operation for route in ROUTES if "limit" in route.optional} == set(LISTINGS)


@pytest.mark.parametrize("operation", LISTINGS)
def test_the_default_that_the_document_names_is_that_of_the_use_case(operation: str) -> None:
    (route,) = [route for route in ROUTES if route.operation == operation]
    asked = inspect.signature(LISTINGS[operation]).parameters
    assert route.optional["limit"].schema["default"] == asked["limit"].default
    assert asked["cursor"].default is None


@pytest.mark.parametrize("operation", ["listReplies", "listMissingRecipients", "listFailedRecipients"])
def test_what_scatters_list_comes_in_smaller_pages(operation: str) -> None:
    (route,) = [route for route in ROUTES if route.operation == operation]
    assert route.optional["limit"].schema["maximum"] == MAX_REPLIES < MAX_PAGE


@pytest.mark.parametrize(
    ("key", "status"), [("k", 201), ("k" * 256, 201), ("k" * 257, 400), ("", 400)], ids=range(4)
)
def test_an_idempotency_key_has_a_length(call, key: str, status: int) -> None:
    (header,) = KEY
    answer = call("POST", "/v1/batches", {}, headers={header: key})
    assert answer.status == status
    if status == 400:
        assert re.match("(header 'Idempotency-Key'|Idempotency-Key) must be text of", answer.json["detail"])
