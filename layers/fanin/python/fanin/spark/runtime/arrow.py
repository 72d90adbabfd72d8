"""What tasks hand to each other: pages of Arrow, whose columns are declared once, for Arrow and for Spark."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

ArrowBatches: TypeAlias = Any
"""A ``pyarrow.RecordBatch``; pyarrow has no type annotations."""
Task: TypeAlias = Callable[[Iterable[ArrowBatches]], Iterator[ArrowBatches]]
"""What ``mapInArrow`` runs in each task."""

_SQL: Final = {
    pa.int8(): "tinyint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.list_(pa.int64()): "array<bigint>",
    pa.list_(pa.list_(pa.int64())): "array<array<bigint>>",
}


def ddl(schema: Any) -> str:
    """The columns of a ``pyarrow.Schema`` as Spark takes them, such as ``batch_id bigint, why string``."""
    return ", ".join(f"{name} {_SQL[kind]}" for name, kind in zip(schema.names, schema.types, strict=True))


def page(schema: Any, rows: Sequence[Sequence[Any]]) -> ArrowBatches:
    """Make a page of rows, each with a value for each column of a ``pyarrow.Schema``."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def for_each(numbers: DataFrame, make: Callable[[int], Iterator[ArrowBatches]], columns: str) -> DataFrame:
    """Make pages of each number in the only column of a DataFrame, in as many tasks as it has partitions."""

    def run(pages: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        for some in pages:
            for number in some.column(0).to_pylist():
                yield from make(number)

    return numbers.mapInArrow(run, columns)
