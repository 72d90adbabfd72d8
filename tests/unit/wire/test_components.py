"""Every shape: what one end writes is of the schema, and the other end reads it the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.entry.http.validation import checked
from fanin.wire import (
    batches,
    buffers,
    directory,
    frames,
    items,
    marks,
    messages,
    picture,
    redrives,
    scatters,
)
from fanin.wire.components import components
from fanin.wire.json_types import NATURAL
from fanin.wire.shapes import plain
from tests.unit.wire.values import CASES

PARTS = {
    "Cost", "CountItems", "Done", "Failure", "FailedItem", "GatheredReply", "ItemRange", "ItemResult",
    "MissingRange",
    "Receipt", "ErrorGroup", "KeptMessage", "EnvelopeClaim", "FailedRecipient", "MissingRecipient",
    "OrdinalRange", "Redriving", "Target", "TargetReport", "Finding", "MissingKnown", "Retry",
    "PictureCell", "PictureItem", "Recipient", "Reply", "ReplyReceipt", "Ticket", "UnsettledMark",
    "Work",
}  # fmt: skip
PLAIN = {"AddItems", "DefineBuffer", "DoneWork", "TakeWork"}
GIVEN = {"PutRoute", "Register"}


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_written_is_of_the_schema_and_read_the_same(name: str, data: st.DataObject) -> None:
    shape, values = CASES[name]
    value = data.draw(values)

    text = json.dumps(shape.encode(value))

    assert shape.decode(checked(shape, text)) == value


def test_every_shape_of_ours_is_among_the_cases() -> None:
    ours = {
        shape.component
        for module in (
            batches,
            buffers,
            directory,
            frames,
            items,
            marks,
            messages,
            picture,
            redrives,
            scatters,
        )
        for shape in module.SHAPES
    }
    assert ours == set(CASES) | PARTS | PLAIN | GIVEN
    assert all(shape.component == name for name, (shape, _) in CASES.items())


def test_two_shapes_of_one_name_are_an_error() -> None:
    row, other = plain("Row", {"number": NATURAL}), plain("Row", {})
    assert components([row, row]) == {"Row": row.definition}
    with pytest.raises(ValueError, match="two shapes are called Row"):
        components([row, other])
