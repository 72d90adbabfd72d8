"""Adds to the rows of a dataset what became of their items."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.ack.input_schema import MAY_BE_WHOLE, InputSchema, check_key_type, whole_number
from fanin.spark.ack.issued import StoredBatches
from fanin.spark.ack.lifting import WINDOW_BITS
from fanin.spark.ack.sql_items import normalize, resolve
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.names import folded, quoted, with_names
from fanin.spark.inputs.opening import open_input
from fanin.spark.outcome.states import ITEMS, KEYED, KEYS, STATES, find_keys_task, read_states_task
from fanin.spark.runtime.lookups import ABSENT, looked_up
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import session_of
from fanin.spark.runtime.unreadable import decoded
from fanin.spark.runtime.values import whole

_ROW: Final = "_row"
_NO_KEY: Final = "there is no item with this key in its batch"


def outcomes(
    rows: DataFrame | Dataset,
    service: Service | None = None,
    *,
    batch_id: int | None = None,
    keys: bool = False,
    results: bool = False,
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
            ``ordinal``, or ``key``, the last two with ``batch_id``; and any others. Columns that this adds
            are replaced.
        service: the stack; by default the one that the environment names.
        batch_id: the batch of all rows, for rows that have only ordinals or keys.
        keys: add a column ``key``, with the key of each item that has one; a read for each addition of up to
            98 keys.
        results: add a column ``result``, with the result of each item that is done and gave one, as JSON; a
            read for each item of a batch that keeps results.

    Returns:
        The rows with two more columns, and those that were asked for. ``outcome`` is ``done``, ``failed``,
        ``held`` (failed, and pending since the batch holds failures), ``pending``, or ``unknown`` where the
        row names no item; ``why`` is the reason of a failure, or why the outcome is unknown.

    Raises:
        InvalidRequest: the columns name no items.
    """
    spark, service = session_of(rows), service or Service.from_env()
    batch_id = None if batch_id is None else whole("batch_id", batch_id)
    if isinstance(rows, Dataset):
        opened = open_input(spark, rows, fields=["item", "batch_id", "ordinal", "key"])
        rows = opened.rows.select(*(quoted(name) for name in opened.columns))
    named = with_names(rows, ["item", "batch_id", "ordinal", "key"])
    by_key = "key" in named.columns and not {"item", "ordinal"} & set(named.columns)
    added = ["outcome", "why", *(["key"] if keys and not by_key else []), *(["result"] if results else [])]
    schema = InputSchema.of([*named.columns, *(["ordinal"] if by_key else [])], batch_id)
    kept = [
        F.col(quoted(name)).alias(given)
        for name, given in zip(named.columns, rows.columns, strict=True)
        if folded(spark, given) not in added
    ]
    row = F.struct(*kept).alias(_ROW)
    if by_key:
        check_key_type("key", named.schema["key"].dataType)
        batch = F.lit(batch_id).cast("long") if schema.batch_id is not None else _batch(named)
        ordinal = ordinals_of_keys(service, batch, F.col("key")).alias("ordinal")
        named = named.select(*(name for name in schema.columns if name != "ordinal"), ordinal, row)
    else:
        named = named.select(*schema.columns, row)
    found = resolve(normalize(named, schema), schema, StoredBatches(service))
    unknown = F.coalesce("detail", "reason")
    if by_key:
        no_ordinal = F.col("reason").isin(Reason.NULL.value, Reason.MALFORMED.value)
        unknown = F.when(no_ordinal, F.lit(_NO_KEY)).otherwise(unknown)
    items = found.select(_ROW, "batch_id", "ordinal", unknown.alias("_unknown"))
    # Neighbours come to one task, which reads their words once.
    spread = items.repartition("batch_id", F.shiftright("ordinal", WINDOW_BITS))
    ordered = spread.sortWithinPartitions("batch_id", "ordinal")
    there = F.col("ordinal").isNotNull()
    names = [F.when(there, F.col(name)).otherwise(F.lit(ABSENT)) for name in ITEMS.names]
    task = read_states_task(service, keys="key" in added, results=results)
    told = {
        **{name: F.col(f"_state.{name}") for name in added},
        "outcome": F.coalesce("_state.outcome", F.lit("unknown")),
        "why": F.coalesce("_state.why", "_unknown"),
    }
    state = looked_up(task, ITEMS, STATES, names)
    return ordered.withColumn("_state", state).select(
        f"{_ROW}.*", *(column.alias(name) for name, column in told.items())
    )


def _batch(rows: DataFrame) -> Column:
    """The column ``batch_id`` as a number."""
    kind = rows.schema["batch_id"].dataType
    return whole_number("batch_id", kind) if isinstance(kind, MAY_BE_WHOLE) else F.col("batch_id")


def ordinals_of_keys(service: Service, batch_id: Column, key: Column, body: Column | None = None) -> Column:
    """The ordinals of the items of keys; null where there is none, which costs a read for each.

    Args:
        service: the stack.
        batch_id: the batch of each key.
        key: text.
        body: the messages of the items; one that was added with another is left out.
    """
    columns = [F.coalesce(batch_id, F.lit(ABSENT)), decoded(key), F.lit("") if body is None else body]
    return looked_up(find_keys_task(service), KEYS, KEYED, columns).getField("ordinal")
