"""The lines of the action log: their fields, what keeps them short; and problems on the wire."""

import json
from dataclasses import replace

import pytest

from fanin import errors
from fanin.entry.http import problems
from fanin.entry.http.openapi import document
from fanin.entry.http.validation import checked
from fanin.errors import InvalidRequest
from fanin.wire.actions import MAX_TEXT, Action, ActionOutcome, Caller, CallerKind, bounded, log_fields
from fanin.wire.problems import DOCUMENT, PROBLEM

CANCEL = Action(
    "cancelBatch",
    {"batch_id": "7"},
    Caller(CallerKind.LOCAL, "ada"),
    ActionOutcome(200),
    at=1_700_000_000_123,
)


def test_an_action_has_only_the_fields_that_are_known():
    assert log_fields(CANCEL) == {
        "action": "cancelBatch",
        "at": "2023-11-14T22:13:20.123Z",
        "object": {"batch_id": "7"},
        "caller": {"kind": "local", "id": "ada"},
        "outcome": {"status": 200},
        "result": {},
    }


def test_an_action_has_all_that_is_known():
    caller = Caller(CallerKind.JWT, "ada", account="1", issuer="https://id", client="console")
    fields = log_fields(
        replace(
            CANCEL,
            caller=caller,
            outcome=ActionOutcome(410, "batch-gone"),
            result={"items": 3},
            request_id="r",
        )
    )
    assert fields["caller"] == {
        "kind": "jwt",
        "id": "ada",
        "account": "1",
        "issuer": "https://id",
        "client": "console",
    }
    assert fields["outcome"] == {"status": 410, "code": "batch-gone"}
    assert (fields["result"], fields["request_id"]) == ({"items": 3}, "r")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("a\nb\x00", "a\nb\x00"),  # JSON escapes them
        ("é" * (MAX_TEXT + 1), "é" * MAX_TEXT),
        ("a\ud800", "a?"),
        ("😀", "😀"),
    ],
)
def test_a_text_is_cut_off_and_can_be_written(text, kept):
    assert bounded(text) == kept


def test_a_line_is_short_whatever_the_caller_says():
    hostile = "\ud800" * 100_000
    caller = Caller(CallerKind.JWT, hostile, hostile, hostile, hostile)
    fields = log_fields(replace(CANCEL, on={"name": hostile}, caller=caller))
    line = json.dumps(fields, ensure_ascii=False).encode()
    assert len(line) < 6 * MAX_TEXT


@pytest.mark.parametrize("error", [errors.BatchNotFound("no"), errors.Throttled("slow down", retry_after=7)])
def test_a_problem_is_of_its_shape(error):
    body = checked(PROBLEM, problems.of(error, "r").body or "")
    assert body["type"] == f"urn:fanin:problem:{error.code}"
    assert set(body) - {"retry_after"} == set(PROBLEM.required)


def test_problems_may_have_more_members_as_the_rfc_allows():
    body = '{"type": "t", "title": "T", "status": 409, "detail": "d", "request_id": "r", "more": 1}'
    assert checked(PROBLEM, body)["more"] == 1
    with pytest.raises(InvalidRequest, match="/status must be a whole number from 400 to 599, not 200"):
        checked(PROBLEM, body.replace("409", "200"))


def test_the_document_is_of_its_own_shape():
    assert checked(DOCUMENT, json.dumps(document([])))["openapi"] == "3.1.0"
