"""Joins the rows of a dataset with what became of their items."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import StoredBatches
from fanin.spark.ack.lifting import WINDOW_BITS
from fanin.spark.ack.sql_items import normalize, resolve
from fanin.spark.outcome.states import STATES, read_states_task
from fanin.spark.runtime.service import Service

_ROW: Final = "_row"


def outcomes(rows: DataFrame, service: Service, *, batch_id: int | None = None) -> DataFrame:
    """Say of each row what became of its item.

    Reads the word of each item, those above it, and a note for each item that has failed; an item costs a
    read unit at most, neighbours a 64th of one. Nothing is written. A batch that goes on meanwhile is read as
    it is when a task comes to it.

    Example:
        >>> told = outcomes(orders, Service.from_env(), batch_id=42)  # doctest: +SKIP
        >>> told.where("outcome = 'failed'").show()  # doctest: +SKIP

    Args:
        rows: with a column ``item``, or ``batch_id`` and ``ordinal``, or ``ordinal``; and any others.
        service: the stack.
        batch_id: the batch of all rows, for rows that have only ordinals.

    Returns:
        The rows with two more columns. ``outcome`` is ``done``, ``failed``, ``held`` (failed, and pending
        since the batch holds failures), ``pending``, or ``unknown`` where the row names no item; ``why`` is
        the reason of a failure, or why the outcome is unknown.

    Raises:
        InvalidRequest: the columns name no items.
    """
    schema = InputSchema.of(rows.columns, batch_id)
    whole = rows.select(*schema.columns, F.struct(*(F.col(f"`{name}`") for name in rows.columns)).alias(_ROW))
    found = resolve(normalize(whole, schema), schema, StoredBatches(service))
    named = found.select(_ROW, "batch_id", "ordinal", F.coalesce("detail", "reason").alias("_unknown"))
    items = named.where("ordinal IS NOT NULL").select("batch_id", "ordinal").distinct()
    spread = items.repartition("batch_id", F.shiftright("ordinal", WINDOW_BITS))
    ordered = spread.sortWithinPartitions("batch_id", "ordinal")
    states = ordered.mapInArrow(read_states_task(service), STATES)
    joined = named.join(states, ["batch_id", "ordinal"], "left")
    return joined.select(
        f"{_ROW}.*",
        F.coalesce("outcome", F.lit("unknown")).alias("outcome"),
        F.coalesce("why", "_unknown").alias("why"),
    )
