"""From bytes to values: JSON that is read, JSON that is not, and what callers are told of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.marks import Done, ItemRange
from fanin.entry.http.mismatches import QUERY
from fanin.entry.http.validation import checked, compiled, parse
from fanin.errors import InvalidRequest
from fanin.wire.batches import ADD_ITEMS
from fanin.wire.carlyle import CREATE as LENIENT
from fanin.wire.json_types import ANYTHING, whole
from fanin.wire.marks import MARKS
from fanin.wire.redrives import SELECTION
from fanin.wire.shapes import object_schema

finite = st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(body=st.dictionaries(st.text(), anything, max_size=3))
def test_any_json_is_read_as_the_standard_library_reads_it(body: dict[str, object]) -> None:
    text = json.dumps(body)
    assert checked(LENIENT, text) == json.loads(text)
    assert checked(LENIENT, text.encode()) == json.loads(text)


def test_a_body_becomes_the_value_that_it_stands_for() -> None:
    body = b'{"marks": ["a", {"group": "g", "from": 1, "to": 3}, {"item": "b", "totals": {"rows": 2}}]}'
    assert parse(MARKS, body) == ("a", ItemRange("g", 1, 3), Done("b", {"rows": 2}))


@pytest.mark.parametrize("text", ["2.0", "2e0", "20e-1", "2"])
def test_a_whole_number_may_be_written_with_a_point_or_an_exponent(text: str) -> None:
    count = checked(ADD_ITEMS, f'{{"count": {text}}}')["count"]
    assert (count, type(count)) == (2, int)


def test_a_body_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="the body is not JSON: it is empty"):
        checked(LENIENT, b"")
    with pytest.raises(InvalidRequest, match="the field 'marks' twice"):
        checked(MARKS, '{"marks": ["a"], "marks": ["b"]}')


def test_a_shape_within_a_shape_is_checked_and_its_place_is_told() -> None:
    with pytest.raises(InvalidRequest, match=r"^/ranges/1/from must be a whole number .* not '1'$"):
        checked(SELECTION, '{"ranges": [{"from": 0, "to": 1}, {"from": "1", "to": 2}]}')


def test_a_check_returns_what_it_was_given_and_adds_no_defaults() -> None:
    limit = whole(1, 9).with_keywords(default=5)
    check = compiled(object_schema({"limit": limit, "any": ANYTHING}, []), QUERY)
    assert check({}) == {}
    assert check({"limit": 3, "any": [None]}) == {"limit": 3, "any": [None]}


def test_the_compiler_of_schemas_is_imported_with_the_first_body() -> None:
    script = (
        "import sys, fanin.entry.http.validation as v\n"
        "from fanin.wire.batches import ADD_ITEMS\n"
        "before = 'fastjsonschema' in sys.modules\n"
        "v.checked(ADD_ITEMS, '{\"count\": 1}')\n"
        "print(before, 'fastjsonschema' in sys.modules)"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
