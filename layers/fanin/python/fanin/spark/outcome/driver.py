"""Adds to the rows of a dataset what became of their items."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import StoredBatches
from fanin.spark.ack.lifting import WINDOW_BITS
from fanin.spark.ack.sql_items import normalize, resolve
from fanin.spark.inputs.names import folded, quoted, with_names
from fanin.spark.outcome.states import ITEMS, STATES, read_states_task
from fanin.spark.runtime.lookups import ABSENT, looked_up
from fanin.spark.runtime.service import Service

_ROW: Final = "_row"
_ADDED: Final = ("outcome", "why")
"""Columns that rows get; those of an earlier call are replaced."""


def outcomes(rows: DataFrame, service: Service, *, batch_id: int | None = None) -> DataFrame:
    """Say of each row what became of its item.

    Reads the word of each item, those above it, and a note for each item that has failed; an item costs a
    read unit at most, neighbours a 64th of one. Nothing is written. A batch that goes on meanwhile is read as
    it is when a task comes to it. Whenever the result is evaluated, each row is evaluated once.

    Example:
        >>> told = outcomes(orders, Service.from_env(), batch_id=42)  # doctest: +SKIP
        >>> told.where("outcome = 'failed'").show()  # doctest: +SKIP

    Args:
        rows: with a column ``item``, or ``batch_id`` and ``ordinal``, or ``ordinal``; and any others.
            ``outcome`` and ``why`` are replaced.
        service: the stack.
        batch_id: the batch of all rows, for rows that have only ordinals.

    Returns:
        The rows with two more columns. ``outcome`` is ``done``, ``failed``, ``held`` (failed, and pending
        since the batch holds failures), ``pending``, or ``unknown`` where the row names no item; ``why`` is
        the reason of a failure, or why the outcome is unknown.

    Raises:
        InvalidRequest: the columns name no items.
    """
    spark = rows.sparkSession
    kept = [name for name in rows.columns if folded(spark, name) not in _ADDED]
    whole = rows.select("*", F.struct(*(F.col(quoted(name)) for name in kept)).alias(_ROW))
    named = with_names(whole, ["item", "batch_id", "ordinal"])
    schema = InputSchema.of([name for name in named.columns if name != _ROW], batch_id)
    found = resolve(normalize(named.select(*schema.columns, _ROW), schema), schema, StoredBatches(service))
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
