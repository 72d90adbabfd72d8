"""Rows that tasks pass on: their columns, and null for those that are not given."""

import pyarrow as pa
import pytest

from fanin.spark.ack import schemas

ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}


@pytest.mark.parametrize(
    ("make", "declared"),
    [
        (schemas.page_records, schemas.PAGES),
        (schemas.merged_records, schemas.MERGED),
        (schemas.mark_records, schemas.MARKS),
    ],
)
def test_records_have_the_columns_that_spark_is_told(make, declared):
    columns = [column.split() for column in declared.split(", ")]
    assert make(0).schema == pa.schema([(name, ARROW[kind]) for name, kind in columns])


def test_columns_that_are_not_given_are_null():
    assert schemas.mark_records(2, number=[1, 2]).to_pylist() == [
        {"batch_id": None, "level": None, "number": 1, "mask": None},
        {"batch_id": None, "level": None, "number": 2, "mask": None},
    ]


def test_arrow_columns_are_cast():
    records = schemas.page_records(1, value=pa.array(["x"], pa.large_string()))
    assert records.column("value").type == pa.string()
