"""How input names items, by the columns that it has."""

import json
import re

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

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


def test_the_refusal_says_how_items_are_named_and_the_columns_that_there_are():
    told = r"in a column item, .*\(--batch, in Python batch_id\); the input has: id, ordinal$"
    with pytest.raises(InvalidRequest, match=told):
        InputSchema.of([LINE, PROBLEM, "ordinal", "id"])


def test_a_batch_without_ordinals_is_refused_and_ids_need_none():
    with pytest.raises(InvalidRequest, match=r"the input has: item\. Where .* leave out the batch"):
        InputSchema.of(["item"], 7)


def types(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    "kind",
    [ArrayType(LongType()), types(a=LongType()), BooleanType(), DateType(), TimestampType(), BinaryType()],
    ids=DataType.simpleString,
)
def test_a_column_of_a_type_that_names_no_items_is_refused(kind):
    # Given input of which one column that names items has such a type
    for name, expected in (
        ("item", "item ids are text"),
        ("ordinal", "batches and ordinals are whole numbers"),
        ("batch_id", "batches and ordinals are whole numbers"),
    ):
        schema = InputSchema(by_id=name == "item")
        columns = types(**dict.fromkeys(schema.columns, LongType()) | {name: kind})
        # Then the refusal has the column, its type, and what it should have been
        told = f"the column {name} has the type {kind.simpleString()}, and {expected}"
        with pytest.raises(InvalidRequest, match=re.escape(told)):
            schema.check_types(columns)


def test_numbers_are_not_item_ids():
    with pytest.raises(InvalidRequest, match="the column item has the type bigint, and item ids are text"):
        InputSchema(by_id=True).check_types(types(item=LongType()))


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        (InputSchema(by_id=True), types(item=StringType(), ordinal=BooleanType())),
        (InputSchema(by_id=True), types(item=NullType())),
        (InputSchema(by_id=False), types(batch_id=DoubleType(), ordinal=StringType(), item=BinaryType())),
        (InputSchema(by_id=False), types(batch_id=NullType(), ordinal=DecimalType(20, 0))),
        (InputSchema(by_id=False, batch_id=7), types(ordinal=ShortType(), batch_id=DateType())),
    ],
)
def test_types_that_can_name_items_are_taken_and_other_columns_do_not_count(schema, columns):
    schema.check_types(columns)


def test_a_row_is_shown_with_the_columns_of_the_input():
    assert json.loads(InputSchema(by_id=False).row_json(7, None)) == {"batch_id": 7, "ordinal": None}
    assert json.loads(InputSchema(by_id=False, batch_id=7).row_json(7, 3)) == {"ordinal": 3}
