"""How input names items, by the columns that it has."""

import json

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.runtime.unreadable import LINE, PROBLEM


@pytest.mark.parametrize(
    ("columns", "batch_id", "schema", "named_by"),
    [
        (["item"], None, InputSchema(by_id=True), ["item"]),
        (["ordinal", "item", "batch_id"], None, InputSchema(by_id=True), ["item"]),
        (["batch_id", "ordinal"], None, InputSchema(by_id=False), ["batch_id", "ordinal"]),
        (["ordinal"], 7, InputSchema(by_id=False, batch_id=7), ["ordinal"]),
        (["item", "ordinal"], 7, InputSchema(by_id=False, batch_id=7), ["ordinal"]),
        (["ordinal"], 0, InputSchema(by_id=False, batch_id=0), ["ordinal"]),
    ],
)
def test_columns_say_how_items_are_named(columns, batch_id, schema, named_by):
    found = InputSchema.of(columns, batch_id)
    assert (found, found.columns) == (schema, named_by)


def test_input_that_names_no_items_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"in a column item, .*\(--batch, in Python batch_id\)"):
        InputSchema.of(["ordinal", "id"], None)


def test_the_refusal_names_the_columns_that_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"the input has: id, ordinal$"):
        InputSchema.of([LINE, PROBLEM, "ordinal", "id"])


def test_a_batch_without_ordinals_is_refused_and_ids_need_none() -> None:
    with pytest.raises(InvalidRequest, match=r"the input has: item\. Where .* leave out the batch"):
        InputSchema.of(["item"], 7)


def test_a_row_is_shown_with_the_columns_of_the_input() -> None:
    assert json.loads(InputSchema(by_id=False).row_json(7, None)) == {"batch_id": 7, "ordinal": None}
    assert json.loads(InputSchema(by_id=False, batch_id=7).row_json(7, 3)) == {"ordinal": 3}


def test_an_item_is_shown_as_the_input_names_it() -> None:
    assert InputSchema(by_id=True).show("7:group", 3) == "7:group:3"
    assert json.loads(InputSchema(by_id=False).show(7, 3)) == {"batch_id": 7, "ordinal": 3}
