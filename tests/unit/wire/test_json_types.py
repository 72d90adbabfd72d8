"""How single values stand in JSON.

Points in time on the wire: RFC 3339, in all its forms.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain import limits
from fanin.domain.batch import State
from fanin.entry.http.validation import checked
from fanin.errors import InvalidRequest
from fanin.wire.json_types import (
    BATCH_ID,
    IDEMPOTENCY_KEY,
    METADATA,
    NO_DEFAULT,
    OBJECT,
    TEXT,
    TIME,
    TIME_IN_SECONDS,
    UUID,
    JsonType,
    decode_time,
    encode_time,
    many,
    map_of,
    number,
    one_of,
    or_null,
    text,
    whole,
)
from fanin.wire.shapes import plain


def test_bounds_are_in_the_schema_only_where_there_are_some():
    assert text().schema == {"type": "string"}
    assert text(9, least=1).schema == {"type": "string", "minLength": 1, "maxLength": 9}
    assert whole(0).schema == {"type": "integer", "minimum": 0}
    assert whole(0, 0).schema == {"type": "integer", "minimum": 0, "maximum": 0}
    assert many(TEXT, 3, least=1).schema == {
        "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3,
    }  # fmt: skip


def test_a_member_of_an_enumeration_is_its_value():
    kind = one_of(State)
    assert kind.schema["enum"] == [state.value for state in State]
    assert (kind.encode(State.OPEN), kind.decode("open")) == ("open", State.OPEN)
    with pytest.raises(ValueError, match="shut"):
        kind.decode("shut")


def test_null_stands_for_none():
    kind = or_null(TIME)
    assert kind.schema == {"type": ["string", "null"], "format": "date-time"}
    assert (kind.encode(None), kind.decode(None)) == (None, None)
    assert kind.decode(kind.encode(5)) == 5


def test_an_array_is_read_as_a_tuple_of_what_its_items_stand_for():
    assert many(TEXT).decode(["a"]) == ("a",)
    assert many(one_of(State)).decode(["open"]) == (State.OPEN,)
    assert many(one_of(State)).encode((State.OPEN,)) == ["open"]


def test_seconds_are_written_as_points_in_time():
    assert TIME_IN_SECONDS.encode(1) == "1970-01-01T00:00:01.000Z"
    assert TIME_IN_SECONDS.decode("1970-01-01T00:00:01.999Z") == 1
    with pytest.raises(InvalidRequest, match="RFC 3339"):
        TIME_IN_SECONDS.decode("soon")


def test_a_changed_type_leaves_the_first_as_it_was():
    changed = TEXT.with_keywords(description="x").called("other").left_out_if_empty().or_else("y")
    assert TEXT.schema == {"type": "string"}
    assert (TEXT.name, TEXT.omit_empty, TEXT.default) == (None, False, NO_DEFAULT)
    assert changed.schema == {"type": "string", "description": "x"}
    assert (changed.name, changed.omit_empty, changed.default) == ("other", True, "y")


def test_a_map_of_strings_has_values_of_its_type():
    kind = map_of(text(3), maxProperties=2)
    assert kind.schema["additionalProperties"] == {"type": "string", "maxLength": 3}
    assert kind.schema["maxProperties"] == 2


KINDS: Mapping[str, JsonType[object]] = {
    "metadata": METADATA,
    "sums": map_of(whole(-2, 3), propertyNames={"pattern": "^[a-z]+$"}),
    "share": number(0.5, 1),
    "key": IDEMPOTENCY_KEY,
    "batch": BATCH_ID,
    "uuid": UUID,
    "object": OBJECT,
    "time": TIME,
    "state": or_null(one_of(State)),
}
ALL = plain("AllKinds", {}, KINDS)
LONG_KEY = "k" * limits.MAX_METADATA_KEY
LONG_VALUE = "v" * limits.MAX_METADATA_VALUE
FULL = {str(place): "" for place in range(limits.MAX_METADATA)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metadata", {}),
        ("metadata", {LONG_KEY: LONG_VALUE}),
        ("metadata", FULL),
        ("sums", {"a": -2, "b": 3}),
        ("share", 0.5),
        ("share", 1),
        ("key", "k"),
        ("key", "k" * limits.MAX_IDEMPOTENCY_KEY),
        ("batch", 0),
        ("batch", 2**53 - 1),
        ("object", {"any": [1]}),
        ("state", None),
        ("state", "open"),
    ],
)
def test_a_value_may_be_as_large_as_its_bounds(name, value):
    assert checked(ALL, json.dumps({name: value})) == {name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metadata", {f"{LONG_KEY}k": ""}),
        ("metadata", {"k": f"{LONG_VALUE}v"}),
        ("metadata", {**FULL, "one-more": ""}),
        ("metadata", {"k": 1}),
        ("sums", {"a": -3}),
        ("sums", {"a": 1.5}),
        ("sums", {"A": 1}),
        ("sums", [1]),
        ("share", 0.49),
        ("key", ""),
        ("batch", -1),
        ("batch", 2**53),
        ("uuid", 7),
        ("object", []),
        ("time", 7),
        ("state", "shut"),
    ],
)
def test_a_value_that_is_out_of_its_bounds_or_of_another_kind_is_refused(name, value):
    with pytest.raises(InvalidRequest, match=f"/{name}"):
        checked(ALL, json.dumps({name: value}))


times = st.integers(0, 4_102_444_800_000)


@given(ms=times)
def test_times_agree_with_the_standard_library(ms):
    text = encode_time(ms)
    assert datetime.fromisoformat(text) == datetime.fromtimestamp(ms // 1000, UTC).replace(
        microsecond=ms % 1000 * 1000
    )
    assert decode_time(text) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00.5z", 500),
        ("1970-01-01T02:00:00.123456+02:00", 123),
        ("1969-12-31T23:00:00-01:00", 0),
    ],
)
def test_times_are_read_in_all_forms_of_rfc_3339(text, ms):
    assert decode_time(text) == ms


@pytest.mark.parametrize(
    "text",
    ["", "now", "1970-01-01", "1970-01-01T00:00:00", "1970-02-30T00:00:00Z", "1970-01-01T24:01:00Z",
     "1970-01-01 00:00:00Z", "१९७०-01-01T00:00:00Z", "1970-01-01T00:00:00Z\n", "7"],
)  # fmt: skip
def test_other_text_is_refused(text):
    with pytest.raises(InvalidRequest, match="RFC 3339"):
        decode_time(text)
