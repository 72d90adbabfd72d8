"""What tasks hand to each other: pages of Arrow, whose columns are declared once, for Arrow and for Spark."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
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


def filled(schema: Any, count: int, **columns: Any) -> ArrowBatches:
    """Make ``count`` rows of a schema; columns that are not given are null."""
    arrays = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        values = columns.get(name)
        if isinstance(values, pa.Array):
            arrays.append(values.cast(kind))
        else:
            arrays.append(pa.nulls(count, kind) if values is None else pa.array(values, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def slices(records: Iterable[ArrowBatches], most: int) -> Iterator[ArrowBatches]:
    """Divide record batches into some of at most so many rows, without a copy."""
    for record in records:
        for first in range(0, record.num_rows, most):
            yield record.slice(first, most)


def changes(*keys: Any) -> npt.NDArray[np.bool_]:
    """Mark the rows whose keys, a numpy array each, differ from those of the row before."""
    new = np.ones(len(keys[0]), bool)
    new[1:] = reduce(or_, (key[1:] != key[:-1] for key in keys))
    return new


def for_each(numbers: DataFrame, make: Callable[[int], Iterator[ArrowBatches]], columns: str) -> DataFrame:
    """Make pages of each number in the only column of a DataFrame, in as many tasks as it has partitions."""

    def run(pages: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        for some in pages:
            for number in some.column(0).to_pylist():
                yield from make(number)

    return numbers.mapInArrow(run, columns)
