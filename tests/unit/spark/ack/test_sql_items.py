"""The task that finds what names stand for; the SQL around it is tested on Spark."""

import pyarrow as pa

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.sql_items import find_blocks_task
from tests.spark.given import Given, batch, block, rows_of

BATCH = batch(7, 5_000)
SOURCE = Given((BATCH,))


def found(schema: InputSchema, *names: str) -> list[tuple[object, ...]]:
    record = pa.RecordBatch.from_pydict({"name": pa.array(names, pa.string())})
    return [tuple(row.values())[:5] for row in rows_of(find_blocks_task(SOURCE, schema)([record]))]


def test_a_prefix_is_its_block_or_the_reason_why_not() -> None:
    group = block(BATCH, 10, 100)
    assert found(InputSchema(by_id=True), group.prefix, "nonsense") == [
        (group.prefix, 7, 10, 100, None),
        ("nonsense", None, None, None, "malformed"),
    ]


def test_a_batch_is_a_block_of_all_its_items() -> None:
    assert found(InputSchema(by_id=False), "7", "8") == [
        ("7", 7, 0, 5_000, None),
        ("8", None, None, None, "foreign"),
    ]


def test_a_block_has_the_totals_of_its_batch() -> None:
    record = pa.RecordBatch.from_pydict({"name": pa.array(["7", "9", "8"], pa.string())})
    source = Given((BATCH, batch(9, 10, totals={"rows": 0, "cents": 0})))

    rows = rows_of(find_blocks_task(source, InputSchema(by_id=False))([record]))

    assert [row["totals"] for row in rows] == [[], ["rows", "cents"], None]
