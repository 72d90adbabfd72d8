"""From bytes to values: JSON that is read, JSON that is not, and what callers are told of it.

What callers read when a value is not of its schema.
"""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.batch import Mode
from fanin.domain.marks import Done, ItemRange
from fanin.entry.http.carlyle_v1 import CREATE as LENIENT
from fanin.entry.http.validation import BODY, HEADERS, QUERY, Mismatch, RequestPart, checked, compiled, parse
from fanin.errors import InvalidRequest
from fanin.wire.batches import ADD_ITEMS
from fanin.wire.json_types import (
    ANYTHING,
    BOOLEAN,
    INDIVISIBLE,
    METADATA,
    TEXT,
    TIME,
    UUID,
    JsonType,
    many,
    map_of,
    one_of,
    or_null,
    text,
    whole,
)
from fanin.wire.marks import MARKS
from fanin.wire.patterns import SCATTER
from fanin.wire.redrives import SELECTION
from fanin.wire.shapes import object_schema

finite = st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(body=st.dictionaries(st.text().filter(lambda name: name != "userKey"), anything, max_size=3))
def test_any_json_is_read_as_the_standard_library_reads_it(body):
    text = json.dumps(body)
    assert checked(LENIENT, text) == json.loads(text)
    assert checked(LENIENT, text.encode()) == json.loads(text)


def test_a_body_becomes_the_value_that_it_stands_for():
    body = b'{"marks": ["a", {"group": "g", "from": 1, "to": 3}, {"item": "b", "totals": {"rows": 2}}]}'
    assert parse(MARKS, body) == ("a", ItemRange("g", 1, 3), Done("b", {"rows": 2}))


@pytest.mark.parametrize("text", ["2.0", "2e0", "20e-1", "2"])
def test_a_whole_number_may_be_written_with_a_point_or_an_exponent(text):
    count = checked(ADD_ITEMS, f'{{"count": {text}}}')["count"]
    assert (count, type(count)) == (2, int)


def test_a_body_that_cannot_be_read_is_refused():
    with pytest.raises(InvalidRequest, match="the body is not JSON: it is empty"):
        checked(LENIENT, b"")
    with pytest.raises(InvalidRequest, match="the field 'marks' twice"):
        checked(MARKS, '{"marks": ["a"], "marks": ["b"]}')


def test_a_shape_within_a_shape_is_checked_and_its_place_is_told():
    with pytest.raises(InvalidRequest, match=r"^/ranges/1/from must be a whole number .* not '1'$"):
        checked(SELECTION, '{"ranges": [{"from": 0, "to": 1}, {"from": "1", "to": 2}]}')


def test_a_check_returns_what_it_was_given_and_adds_no_defaults():
    limit = whole(1, 9).with_keywords(default=5)
    check = compiled(object_schema({"limit": limit, "any": ANYTHING}, []), QUERY)
    assert check({}) == {}
    assert check({"limit": 3, "any": [None]}) == {"limit": 3, "any": [None]}


def test_the_compiler_of_schemas_is_imported_with_the_first_body():
    script = (
        "import sys, fanin.entry.http.validation as v\n"
        "from fanin.wire.batches import ADD_ITEMS\n"
        "before = 'fastjsonschema' in sys.modules\n"
        "v.checked(ADD_ITEMS, '{\"count\": 1}')\n"
        "print(before, 'fastjsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def refusal(
    kinds: dict[str, JsonType[Any]], value: Any, part: RequestPart = BODY, *, required: Any = ()
) -> str:
    """What a caller reads who sends this value."""
    schema = object_schema(kinds, required)
    with pytest.raises(InvalidRequest) as refused:
        compiled(schema, part)(value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (whole(1, 9), "x", "a whole number from 1 to 9, not 'x'"),
        (whole(1, 9), 0, "a whole number from 1 to 9, not 0"),
        (whole(1, 9), 10**80, "a whole number from 1 to 9, not 1" + "0" * 62 + "…"),
        (whole(1, 9), True, "a whole number from 1 to 9, not true"),
        (whole(0), -1, "a whole number of at least 0, not -1"),
        (or_null(whole(1, 9)), [], "a whole number from 1 to 9 or null, not an array"),
        (BOOLEAN, "yes", "true or false, not 'yes'"),
        (TEXT, 7, "text, not 7"),
        (TEXT, {"a": 1}, "text, not an object"),
        (text(5), "abcdef", "text of at most 5 characters, not of 6"),
        (text(least=1), "", "text of at least 1 character, not empty"),
        (
            text().with_keywords(pattern="^[a-z]+$"),
            "A" * 80,
            f"text that matches ^[a-z]+$, not '{'A' * 63}…'",
        ),
        (one_of(Mode), "roughly", "one of exact, estimated, not 'roughly'"),
        (TIME, "soon", "an RFC 3339 timestamp such as 2026-11-21T09:40:00.123Z, not 'soon'"),
        (or_null(TIME), 5, "an RFC 3339 timestamp such as 2026-11-21T09:40:00.123Z or null, not 5"),
        (UUID, "9", "a UUID such as 00000000-0000-8010-8000-000000000000, not '9'"),
        (many(TEXT), "x", "an array, not 'x'"),
        (many(TEXT, 2), [""] * 3, "an array of at most 2 values, not of 3; send the rest in another call"),
        (
            many(TEXT, 2).with_keywords(**{INDIVISIBLE: True}),
            [""] * 3,
            "an array of at most 2 values, not of 3",
        ),
        (METADATA, [], "an object, not an array"),
    ],
)
def test_what_was_expected_and_what_came(kind, value, says):
    assert refusal({"it": kind}, {"it": value}) == f"/it must be {says}"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({str(i): "" for i in range(17)}, "have at most 16 fields, not 17"),
        ({"a": "", "b" * 70: ""}, "have names of at most 64 characters, not of 70"),
    ],
)
def test_a_map_that_is_too_large(value, says):
    assert refusal({"metadata": METADATA}, {"metadata": value}) == f"/metadata must {says}"


def test_a_quorum_may_be_a_number_or_a_share():
    kind = SCATTER.definition["properties"]["quorum"]
    assert refusal({"quorum": JsonType(kind)}, {"quorum": 0}) == (
        "/quorum must be a number above 0 and at most 100000 or null, not 0"
    )


def test_fields_that_are_missing_are_named():
    kinds = {"a": TEXT, "b": TEXT, "c": TEXT}
    assert refusal(kinds, {"b": ""}, required=["a", "b"]) == "the body must have the field 'a'"
    assert refusal(kinds, {}, required=["a", "b"]) == "the body must have the fields 'a', 'b'"
    assert refusal(kinds, {}, QUERY, required=["a"]) == "the query must have the parameter 'a'"


def test_unknown_fields_are_named_and_those_that_there_are():
    kinds = {"a": TEXT, "b": TEXT}
    assert refusal(kinds, {"A": 1}) == "the body has the unknown field 'A'; known are a, b"
    assert refusal(kinds, {"A": 1}, QUERY) == "the query has the unknown parameter 'A'; known are a, b"
    assert (
        refusal({}, {"A": 1}, QUERY)
        == "the query has the unknown parameter 'A'; this call takes no parameters"
    )
    assert refusal(kinds, dict.fromkeys("ABCD", 1)) == (
        "the body has the unknown fields 'A', 'B', 'C' …; known are a, b"
    )


def test_the_whole_of_a_part_has_a_name():
    with pytest.raises(InvalidRequest, match=r"^the body must be an object, not null$"):
        compiled(object_schema({}, []), BODY)(None)


def test_parameters_and_headers_are_named_as_such():
    assert refusal({"limit": whole(1, 9)}, {"limit": "x"}, QUERY).startswith("parameter 'limit' must be a ")
    assert refusal({"Key": text(1)}, {"Key": "ab"}, HEADERS).startswith("header 'Key' must be text of ")


@pytest.mark.parametrize(
    ("name", "pointer"), [("plain", "plain"), ("a/b~c", "a~1b~0c"), ("{x}", "{x}"), ("é\n", "é\n")]
)
def test_a_place_is_a_json_pointer(name, pointer):
    says = refusal({"metadata": METADATA}, {"metadata": {name: 1}})
    assert says == f"/metadata/{pointer} must be text of at most 256 characters, not 1"


@given(name=st.text(max_size=2_000), value=st.integers() | st.floats(allow_nan=False) | st.lists(st.none()))
def test_what_came_makes_no_long_answer(name, value):
    says = Mismatch("type", {"type": "string"}, value, ("metadata", name)).within(BODY)
    assert len(says) < 300
    assert says.startswith("/metadata/")


def test_names_that_are_not_of_their_pattern_are_shown_with_it():
    kind = map_of(whole(0, 9), propertyNames={"pattern": "^[a-z]+$"})
    assert refusal({"it": kind}, {"it": {"rows": 1, "Rows": 2}}) == (
        "/it must have names that match ^[a-z]+$, not name 'Rows'"
    )
