"""Columns that tasks look up for each row as it passes: no join reads the rows once more for their keys."""

from collections.abc import Iterable
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.runtime.arrow import Task, ddl, page

ABSENT: Final = -1
"""Stands for a number that is not there: a column of pandas that has nulls would round the others."""


def looked_up(task: Task, keys: Any, found: Any, columns: Iterable[Column]) -> Column:
    """Look up what belongs to some columns, as a structure: null where a key is null or ``ABSENT``.

    Args:
        task: takes pages of different keys, in order, and gives a row for each.
        keys: their ``pyarrow.Schema``.
        found: that of what the task gives: the keys, and then what belongs to them.
        columns: the keys of a row.
    """
    names, more = keys.names, found.names[len(keys.names) :]

    def run(given: pd.DataFrame) -> pd.DataFrame:
        asked = list(zip(*(given[name].tolist() for name in names), strict=True))
        there = sorted({key for key in asked if None not in key and ABSENT not in key})
        rows = [row for some in task([page(keys, there)]) for row in some.to_pylist()] if there else []
        told = {tuple(row[name] for name in names): [row[name] for name in more] for row in rows}
        nothing = [None] * len(more)
        return pd.DataFrame([told.get(key, nothing) for key in asked], columns=more, dtype=object)

    run.__annotations__ = {"given": pd.DataFrame, "return": pd.DataFrame}  # which Spark looks at
    kind = ddl(pa.schema([found.field(name) for name in more]))
    named = (column.alias(name) for column, name in zip(columns, names, strict=True))
    return F.pandas_udf(run, kind)(F.struct(*named))  # type: ignore[attr-defined, no-any-return]
