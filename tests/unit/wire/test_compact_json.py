"""JSON in few bytes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.errors import InvalidRequest
from fanin.wire.compact_json import compact, json_text

ANY_TEXT = st.text(st.characters())
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)
SENDABLE = re.compile("[\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
"""What SQS takes, see "SendMessage" in its API Reference."""


@settings(max_examples=30)
@given(ANY_JSON)
def test_it_says_the_same_and_can_be_sent(value: object) -> None:
    text = compact(value)

    assert json.loads(text) == value
    assert SENDABLE.fullmatch(text)


def test_characters_that_cannot_be_sent_are_escaped() -> None:
    assert compact(["\ud83d", "\ufffe\uffff"]) == '["\\ud83d","\\ufffe\\uffff"]'


def test_other_text_has_as_many_bytes_as_in_utf8() -> None:
    assert len(compact("é" * 100_000).encode()) == 200_002


@pytest.mark.parametrize(
    "value", [{1, 2}, float("nan"), {"a": float("inf")}, b"x", datetime(2026, 11, 24, tzinfo=UTC)]
)
def test_what_json_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^payload cannot be written as JSON: .*; use text, numbers"):
        json_text("payload", value)


def test_json_is_written_as_it_reads() -> None:
    assert json_text("payload", {"a": ["ü", 1.5, None, True]}) == '{"a": ["ü", 1.5, null, true]}'


def test_compact_refuses_what_json_does_not_have() -> None:
    with pytest.raises(InvalidRequest, match=r"^detail cannot be written as JSON"):
        compact({"a": float("nan")}, "detail")
