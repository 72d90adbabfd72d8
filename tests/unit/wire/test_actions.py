"""The lines of the action log: their fields, and what keeps them short."""

import json
from dataclasses import replace

import pytest

from fanin.wire.actions import MAX_TEXT, Action, ActionOutcome, Caller, CallerKind, bounded, log_fields

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
