"""The routes of diagnostics."""

from __future__ import annotations

import pytest


@pytest.fixture
def path(call) -> str:
    batch = call("POST", "/v1/batches", {}).json["batch_id"]
    call("POST", f"/v1/batches/{batch}/items", {"count": 3})
    return f"/v1/batches/{batch}"


@pytest.mark.parametrize(
    "body",
    [
        {"queue": "q", "from": 0, "to": 4},
        {"queue": "q", "from": 2, "to": 2},
        {"queue": "", "from": 0, "to": 1},
        {"queue": "q" * 1_025, "from": 0, "to": 1},
        {"queue": "q", "from": 0},
    ],
)
def test_a_note_of_what_cannot_have_been_sent_is_refused(call, path: str, body: dict) -> None:
    assert call("POST", f"{path}/sent", body).status == 400


def test_a_forged_item_is_refused(call, path: str) -> None:
    retry = {"item": "7:00000000-0000-8000-8000-000000000000:0", "attempt": 3, "error": ""}

    assert call("POST", "/v1/retries", {"retries": [retry]}).status in {400, 404}


def test_an_unknown_batch_is_not_found(call) -> None:
    assert call("GET", "/v1/batches/5/diagnosis").status == 404
