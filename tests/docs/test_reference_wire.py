"""docs/reference/wire.md against the shapes of the code."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from fanin import names
from fanin.domain.limits import MAX_MARKS
from fanin.domain.marks import WEIGHT, Failure
from fanin.entry.http.validation import parse
from fanin.wire import items, marks, messages
from fanin.wire.shapes import Shape
from tests.docs.pages import blocks, text

PAGE = "reference/wire.md"
TABLES: dict[str, Shape[Any]] = {
    "A done item": marks.DONE,
    "A failure": marks.FAILURE,
    "A range": marks.RANGE,
    "A count": marks.COUNT,
    "A kept message": messages.KEPT_MESSAGE,
    "A note of an attempt": items.RETRY,
    "A note of what was sent": items.SENT,
}
LIMITS = ("maxItems", "maxLength", "maximum", "maxProperties")


def rows(title: str) -> list[tuple[str, str, bool]]:
    """Name, description and need of each field in the table of a section."""
    (section,) = re.findall(rf"^##+ {title}\n(.*?)(?=^##|\Z)", text(PAGE), re.MULTILINE | re.DOTALL)
    found = re.findall(r"^\| `(\w+)` \| (.+) \| (yes)? ?\|$", section, re.MULTILINE)
    return [(name, holds, bool(needed)) for name, holds, needed in found]


def limits(schema: object) -> Iterator[int]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in LIMITS and isinstance(value, int) and value != 2:  # both parts of an attribute
                yield value
            else:
                yield from limits(value)


@pytest.mark.parametrize("title", TABLES)
def test_a_table_has_the_fields_of_the_shape_with_their_limits(title):
    shape, found = TABLES[title], rows(title)
    assert [name for name, _, _ in found] == list(shape.fields)
    assert {name for name, _, needed in found if needed} == set(shape.required)
    for name, holds, _ in found:
        for limit in limits(shape.definition["properties"][name]):
            assert f"{limit:,}" in holds or holds == "as of a done item", (name, limit)


def test_the_example_is_what_the_ack_queue_takes():
    (example,) = blocks(PAGE, "json")
    found = parse(marks.MARKS, example)
    assert [type(mark) for mark in found] == [str, Failure]
    assert marks.MARKS.encode(found) == json.loads(example)


def test_marks_weigh_what_it_says():
    assert f"up to a weight of {MAX_MARKS:,}" in text(PAGE)
    assert f"a count {WEIGHT}." in text(PAGE)


def test_it_names_the_attributes():
    assert set(re.findall(r"`(fanin-[a-z-]+)`", text(PAGE))) == {
        names.ITEM_ATTRIBUTE,
        names.ATTRIBUTE_REPLY_TO,
    }


def test_notes_are_as_many_as_it_says():
    retries = items.RETRIES.definition["properties"]["retries"]
    assert f"takes up to {retries['maxItems']:,} of them" in text(PAGE)
