"""Event patterns, as EventBridge reads them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from fanin.domain import patterns
from fanin.errors import InvalidRequest

EVENT = {
    "source": "shop",
    "detail": {
        "n": 7,
        "yes": True,
        "none": None,
        "name": "Straße 7",
        "file": "a/lib/b.png",
        "ip": "10.0.0.9",
        "tags": ["a", ["b"]],
        "empty": [],
        "rows": [{"k": 1, "v": "x"}, {"k": 2, "v": "y"}],
    },
}


@pytest.mark.parametrize(
    ("field", "choices", "expected"),
    [
        ("n", [7.0], True),
        ("n", [True], False),
        ("yes", [1], False),
        ("tags", ["b"], True),
        ("file", [{"wildcard": "a/lib*lib/b.png"}], False),
        ("yes", [{"numeric": ["=", 1]}], False),
        ("none", [{"exists": True}], True),
        ("empty", [{"exists": True}], False),
        ("n", [{"exists": False}, 7], True),
        ("rows", {"k": [1], "v": ["y"]}, False),
        ("n", {"deep": [{"exists": False}]}, True),
        ("name", [{"soundex": "S362"}], None),
        ("name", [{"soundex": "S362"}, "Straße 7"], True),
        ("gone", [{"soundex": "S362"}], False),
        ("name", [{"anything-but": {"soundex": "S362"}}], None),
        ("name", [{"prefix": {"soundex": "S362"}}], None),
        ("n", [{"numeric": ["~", 7]}], None),
    ],
)
def test_a_field_matches_if_one_of_its_choices_does(field, choices, expected):
    pattern = {"detail": {field: choices}}
    patterns.check(pattern)
    assert patterns.matches(pattern, EVENT) is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"source": ["shop"], "detail": {"n": [7]}}, True),
        ({"source": ["shop"], "detail": {"n": [8]}}, False),
        ({"source": ["other"], "detail": {"n": [{"soundex": "x"}]}}, False),
        ({"detail.n": [7]}, True),
        ({"$or": [{"source": ["x"]}, {"detail": {"n": [7]}}]}, True),
        ({"source": ["shop"], "$or": [{"detail": {"n": [8]}}, {"detail": {"n": [9]}}]}, False),
        ({"detail": {"yes": [True], "$or": [{"n": [8]}, {"n": [{"numeric": ["<", 8]}]}]}}, True),
        # A path that is named twice: the later list counts, whichever that is.
        ({"source": ["x"], "$or": [{"source": ["shop"]}, {"detail": {"n": [8]}}]}, True),
        ({"$or": [{"source": ["shop"]}, {"detail": {"n": [8]}}], "source": ["x"]}, False),
        ({"source": ["shop"], "$or": [{"source": {"x": [1]}}, {"source": {"y": [1]}}]}, False),
        # Both conditions are of one row, also if $or stands between them.
        ({"detail": {"rows": {"k": [1]}, "$or": [{"rows": {"v": ["y"]}}, {"n": [8]}]}}, False),
    ],
)
def test_all_fields_of_a_pattern_must_match(pattern, *, expected):
    assert patterns.matches(pattern, EVENT) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        {},
        [],
        {"source": "shop"},
        {"source": []},
        {"detail": {}},
        {"detail": {"n": [7], "m": 1}},
        {"source": ["x"], "$or": [{"source": ["y"]}, {}]},
        {f"f{n}": {"$or": [{"a": [1]}, {"b": [1]}]} for n in range(10)},
    ],
)
def test_what_cannot_be_a_pattern_is_refused(pattern):
    with pytest.raises(InvalidRequest, match="event pattern"):
        patterns.check(pattern)


def test_verdicts_and_refusals_are_those_of_the_matcher_of_aws():
    # Given patterns, events and verdicts of aws/event-ruler 337e8d99: cases of its own tests (Apache 2.0),
    # and edges that it was asked about; where a pattern is invalid, its words
    cases = json.loads(Path(__file__).with_name("event_ruler.json").read_text(encoding="utf-8"))
    for pattern, event, expected in cases:
        # Then each is judged in the same way
        if isinstance(expected, bool):
            patterns.check(pattern)
            patterns.check_operators(pattern)
            assert patterns.matches(pattern, event) is expected, (pattern, event)
        else:
            with pytest.raises(InvalidRequest):
                patterns.check_operators(pattern)


def test_what_stands_between_stars_does_not_overlap():
    assert patterns.matches({"a": [{"wildcard": "*ab*b*"}]}, {"a": "ab"}) is False


def test_a_hostile_pattern_or_event_takes_no_time():
    # Given wildcards that nearly match a long text, lists within lists, and many elements to choose from
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    began = time.process_time()  # of this process alone, however busy the machine is
    # Then both are judged at once
    assert patterns.matches({"a": [{"wildcard": "*a" * 500 + "b"}]}, {"a": "a" * 200_000}) is False
    assert patterns.matches({"a": ["x"]}, {"a": deep}) is True
    rows = [{"x": 1, "y": number} for number in range(1_000)]
    many = {name: {"x": [1], "y": [{"numeric": [">", -1]}]} for name in "abcdefghij"}
    assert patterns.matches({**many, "k": [1]}, dict.fromkeys("abcdefghij", rows)) is False
    # Lists that stay open until the last path can multiply; what takes too long is not told
    names = ["a" + "-" * number for number in range(5)]
    open_ = {name: [1] for name in names} | {f"{name}.x": [2] for name in names}
    assert patterns.matches(open_, {name: [[1], [1, {"x": 1}]] * 20 for name in names}) is None
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("field", "operator"),
    [
        ("n", {"numeric": ["<", "a"]}),
        ("n", {"numeric": ["<"]}),
        ("n", {"numeric": []}),
        ("n", {"numeric": [[], 1]}),
        ("n", {"numeric": ["<", True]}),
        ("n", {"numeric": ["<", 2**53 + 1]}),  # no double has it
        ("name", {"anything-but": {}}),
        ("name", {"anything-but": {"prefix": "a", "suffix": "b"}}),
    ],
)
def test_what_an_operator_cannot_take_is_neither_true_nor_false(field, operator):
    pattern = {"detail": {field: [operator]}}
    patterns.check(pattern)
    assert patterns.matches(pattern, EVENT) is None


def test_fields_are_judged_as_deep_as_they_may_be_and_refused_beyond():
    pattern: Any = ["x"]
    event: Any = "x"
    for _ in range(64):
        pattern, event = {"a": pattern}, {"a": event}
    patterns.check(pattern)
    assert patterns.matches(pattern, event) is True
    for deeper in ({"a": pattern}, {"$or": [pattern, {"b": ["x"]}]}):
        with pytest.raises(InvalidRequest, match="64"):
            patterns.check(deeper)
