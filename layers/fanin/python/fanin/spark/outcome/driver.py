"""Adds to the rows of a dataset what became of their items."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import StoredBatches
from fanin.spark.ack.lifting import WINDOW_BITS
from fanin.spark.ack.sql_items import normalize, resolve
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.names import folded, quoted, with_names
from fanin.spark.inputs.opening import open_input
from fanin.spark.outcome.states import ITEMS, STATES, read_states_task
from fanin.spark.runtime.lookups import ABSENT, looked_up
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import session_of
from fanin.spark.runtime.values import whole

_ROW: Final = "_row"
_ADDED: Final = ("outcome", "why")
"""Columns that rows get; those of an earlier call are replaced."""


def outcomes(
    rows: DataFrame | Dataset, service: Service | None = None, *, batch_id: int | None = None
) -> DataFrame:
    """Say of each row what became of its item.

    Reads the word of each item, those above it, and a note for each item that has failed; an item costs a
    read unit at most, neighbours a 64th of one. Nothing is written. A batch that goes on meanwhile is read as
    it is when a task comes to it. Whenever the result is evaluated, each row is evaluated once.

    Example:
        >>> told = outcomes(orders, batch_id=42)  # doctest: +SKIP
        >>> told.where("outcome = 'failed'").show()  # doctest: +SKIP

    Args:
        rows: a DataFrame, or a ``Dataset``, which says where the rows are; with a column ``item``, or
            ``batch_id`` and ``ordinal``, or ``ordinal``; and any others. ``outcome`` and ``why`` are
            replaced.
        service: the stack; by default the one that the environment names.
        batch_id: the batch of all rows, for rows that have only ordinals.

    Returns:
        The rows with two more columns. ``outcome`` is ``done``, ``failed``, ``held`` (failed, and pending
        since the batch holds failures), ``pending``, or ``unknown`` where the row names no item; ``why`` is
        the reason of a failure, or why the outcome is unknown.

    Raises:
        InvalidRequest: the columns name no items.
    """
    spark, service = session_of(rows), service or Service.from_env()
    batch_id = None if batch_id is None else whole("batch_id", batch_id)
    if isinstance(rows, Dataset):
        opened = open_input(spark, rows, fields=["item", "batch_id", "ordinal"])
        rows = opened.rows.select(*(quoted(name) for name in opened.columns))
    named = with_names(rows, ["item", "batch_id", "ordinal"])
    schema = InputSchema.of(named.columns, batch_id)
    kept = [
        F.col(quoted(name)).alias(given)
        for name, given in zip(named.columns, rows.columns, strict=True)
        if folded(spark, given) not in _ADDED
    ]
    keyed = named.select(*schema.columns, F.struct(*kept).alias(_ROW))
    found = resolve(normalize(keyed, schema), schema, StoredBatches(service))
    items = found.select(_ROW, "batch_id", "ordinal", F.coalesce("detail", "reason").alias("_unknown"))
    # Neighbours come to one task, which reads their words once.
    spread = items.repartition("batch_id", F.shiftright("ordinal", WINDOW_BITS))
    ordered = spread.sortWithinPartitions("batch_id", "ordinal")
    there = F.col("ordinal").isNotNull()
    keys = [F.when(there, F.col(name)).otherwise(F.lit(ABSENT)) for name in ITEMS.names]
    state = looked_up(read_states_task(service), ITEMS, STATES, keys)
    return ordered.withColumn("_state", state).select(
        f"{_ROW}.*",
        F.coalesce("_state.outcome", F.lit("unknown")).alias("outcome"),
        F.coalesce("_state.why", "_unknown").alias("why"),
    )
