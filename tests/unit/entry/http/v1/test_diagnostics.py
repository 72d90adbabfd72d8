"""The routes of diagnostics."""

from __future__ import annotations

import pytest


@pytest.fixture
def path(call) -> str:
    batch = call("POST", "/v1/batches", {}).json["batch_id"]
    call("POST", f"/v1/batches/{batch}/items", {"count": 3})
    return f"/v1/batches/{batch}"


def test_a_diagnosis_has_the_batch_findings_and_missing_ranges(call, path: str) -> None:
    noted = call("POST", f"{path}/sent", {"queue": "https://sqs/1/work", "from": 0, "to": 2})
    answer = call("GET", f"{path}/diagnosis")

    assert (noted.status, answer.status) == (204, 200)
    assert answer.json["state"] == "open"
    assert "salt" not in answer.json
    assert {one["code"] for one in answer.json["findings"]} >= {"open_not_closed", "never_sent"}
    assert set(answer.json["findings"][0]) == {"code", "severity", "title", "detail", "advice", "evidence"}
    assert [(one["to"], one["known"]) for one in answer.json["missing"]] == [
        (2, "unknown"),
        (3, "never_sent"),
    ]


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


def test_failed_attempts_are_noted(call, path: str) -> None:
    prefix = call("GET", f"{path}/missing").json["ranges"][0]["group"]
    retry = {"item": f"{prefix}:1", "attempt": 3, "error": "no such customer"}

    assert call("POST", "/v1/retries", {"retries": [retry]}).status == 204

    (finding,) = [
        one for one in call("GET", f"{path}/diagnosis").json["findings"] if one["code"] == "retrying"
    ]
    assert finding["evidence"] == {
        "items": 1,
        "item": 1,
        "attempt": 3,
        "error": "no such customer",
        "queue": "",
    }


def test_a_forged_item_is_refused(call, path: str) -> None:
    retry = {"item": "7:00000000-0000-8000-8000-000000000000:0", "attempt": 3, "error": ""}

    assert call("POST", "/v1/retries", {"retries": [retry]}).status in {400, 404}


def test_an_unknown_batch_is_not_found(call) -> None:
    assert call("GET", "/v1/batches/5/diagnosis").status == 404
