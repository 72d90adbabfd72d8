"""Rows that tasks pass on: their columns, and null for those that are not given."""

import pyarrow as pa

from fanin.spark.ack import schemas


def test_columns_that_are_not_given_are_null():
    assert schemas.mark_records(2, number=[1, 2]).to_pylist() == [
        {"batch_id": None, "level": None, "number": 1, "mask": None},
        {"batch_id": None, "level": None, "number": 2, "mask": None},
    ]


def test_arrow_columns_are_cast():
    records = schemas.page_records(1, value=pa.array(["x"], pa.large_string()))
    assert records.column("value").type == pa.string()
