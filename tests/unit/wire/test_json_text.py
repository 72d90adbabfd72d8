"""JSON that others wrote: read as it stands, or refused.

JSON in few bytes.
"""

import json
import math
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.errors import InvalidRequest
from fanin.wire.json_text import MAX_DEPTH, compact, json_text, read_json

finite = st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(value=anything)
def test_any_json_is_read_as_the_standard_library_reads_it(value):
    text = json.dumps(value)
    assert read_json(text) == read_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "it is empty"),
        (b"", "it is empty"),
        ("nonsense", "expecting value at line 1, column 1"),
        ('{"a": 1,\n}', "expecting property name enclosed in double quotes at line 2, column 1"),
        ("{} {}", "extra data at line 1, column 4"),
        ('{"count": NaN}', "NaN is not a number"),
        ('{"count": 1e999}', "a number is too large"),
        ('{"count": ' + "1" * 5_000 + "}", "a number is too large"),
        ("[" * 100_000, f"it is nested more than {MAX_DEPTH} levels deep"),
        ('{"a": "\\ud800"}', "a string has one half of a surrogate pair without the other"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
    ],
)
def test_what_cannot_be_read_says_why(body, why):
    with pytest.raises(InvalidRequest) as refused:
        read_json(body)
    assert str(refused.value) == f"the body is not JSON: {why}"


@pytest.mark.parametrize("text", ["2.0", "2e0", "20e-1", "2"])
def test_a_whole_number_may_be_written_with_a_point_or_an_exponent(text):
    assert (read_json(text), type(read_json(text))) == (2, int)


@pytest.mark.parametrize(
    "body",
    [
        '{"items": ["a"], "items": ["b"]}',
        '{"items": ["a"], "\\u0069tems": ["b"]}',
        '{"ranges": [{"group": "g"}, {"group": "g", "items": 1, "items": 2}]}',
    ],
    ids=["at the top", "escaped", "deep down"],
)
def test_a_field_that_occurs_twice_is_refused_since_one_would_be_lost(body):
    with pytest.raises(InvalidRequest, match="the body has the field 'items' twice in one object"):
        read_json(body)


def test_fields_of_several_objects_may_have_one_name():
    assert read_json('[{"a": 1}, {"a": {"a": 2}}]') == [{"a": 1}, {"a": {"a": 2}}]


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}"), ('[0,{"a":', "}]")])
def test_nesting_has_a_limit_that_does_not_depend_on_the_caller(left, right):
    levels = MAX_DEPTH // (left.count("[") + left.count("{"))
    assert read_json(left * levels + "1" + right * levels)

    for deeper in (levels + 1, 5_000):
        with pytest.raises(InvalidRequest, match="nested more than 100 levels"):
            read_json(left * deeper + "1" + right * deeper)


def test_many_values_side_by_side_are_not_deep():
    wide = [{"n": [n]} for n in range(2 * MAX_DEPTH)]
    assert read_json(json.dumps(wide)) == wide
    assert math.isclose(read_json("1.5"), 1.5)


ANY_TEXT = st.text(st.characters())
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)
SENDABLE = re.compile("[\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
"""What SQS takes, see "SendMessage" in its API Reference."""


@settings(max_examples=30)
@given(ANY_JSON)
def test_it_says_the_same_and_can_be_sent(value):
    text = compact(value)

    assert json.loads(text) == value
    assert SENDABLE.fullmatch(text)


def test_characters_that_cannot_be_sent_are_escaped():
    assert compact(["\ud83d", "\ufffe\uffff"]) == '["\\ud83d","\\ufffe\\uffff"]'


def test_other_text_has_as_many_bytes_as_in_utf8():
    assert len(compact("é" * 100_000).encode()) == 200_002


@pytest.mark.parametrize(
    "value", [{1, 2}, float("nan"), {"a": float("inf")}, b"x", datetime(2026, 11, 24, tzinfo=UTC)]
)
def test_what_json_does_not_have_is_refused(value):
    with pytest.raises(InvalidRequest, match=r"^payload cannot be written as JSON: .*; use text, numbers"):
        json_text("payload", value)


def test_json_is_written_as_it_reads():
    assert json_text("payload", {"a": ["ü", 1.5, None, True]}) == '{"a": ["ü", 1.5, null, true]}'


def test_compact_refuses_what_json_does_not_have():
    with pytest.raises(InvalidRequest, match=r"^detail cannot be written as JSON"):
        compact({"a": float("nan")}, "detail")
