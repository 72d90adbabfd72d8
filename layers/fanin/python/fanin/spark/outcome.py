"""Adds to the rows of a dataset what became of their items: done, failed and why, held, or pending."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import ResultRow
from fanin.app.ports.words import WordKey, WordRow
from fanin.domain.batch import Batch
from fanin.domain.ids import checked_key, payload_digest
from fanin.domain.limits import chunks
from fanin.domain.picture import ItemState
from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import MAY_BE_WHOLE, InputSchema, check_key_type, normalize, whole_number
from fanin.spark.ack.issued import IssuedItems, Refused, find_items
from fanin.spark.ack.page_merger import WINDOW_BITS
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.names import folded, quoted, with_names
from fanin.spark.inputs.opening import open_input
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import session_of
from fanin.spark.runtime.unreadable import decoded
from fanin.spark.runtime.values import id_of_batch

ABSENT: Final = -1
"""Stands for a number that is not there: a column of pandas that has nulls would round the others."""
_ROW: Final = "_row"
_AT_ONCE: Final = 10_000
_TREE: Final = Tree()
_UNTOUCHED: Final = WordRow(_TREE.full, 0, {})
_Key: TypeAlias = tuple[Any, ...]
_Found: TypeAlias = tuple[Any, ...]
"""By what is looked up, such as batch and ordinal of an item, and what is found, its outcome and why."""


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
        InvalidRequest: the columns name no items, or two have the same name but for its case.
    """
    spark, service = session_of(rows), service or Service.from_env()
    batch_id = id_of_batch(batch_id)
    if isinstance(rows, Dataset):
        opened = open_input(spark, rows, fields=["item", "batch_id", "ordinal", "key"])
        rows = opened.rows.select(*(quoted(name) for name in opened.columns))
    named = with_names(rows, [*rows.columns, "item", "batch_id", "ordinal", "key"])
    by_key = "key" in named.columns and not {"item", "ordinal"} & set(named.columns)
    added = ["outcome", "why", *(["key"] if keys and not by_key else []), *(["result"] if results else [])]
    schema = InputSchema.of([*named.columns, *(["ordinal"] if by_key else [])], batch_id)
    columns = zip(named.columns, rows.columns, strict=True)
    kept = [F.col(quoted(name)).alias(one) for name, one in columns if folded(spark, one) not in added]
    named = named.withColumn(_ROW, F.struct(*kept))
    if by_key:
        check_key_type("key", named.schema["key"].dataType)
        batch = F.lit(batch_id).cast("long")
        if batch_id is None:
            type_ = named.schema["batch_id"].dataType
            batch = whole_number("batch_id", type_) if isinstance(type_, MAY_BE_WHOLE) else F.col("batch_id")
        named = named.withColumn("ordinal", ordinals_of_keys(service, batch, F.col("key")))
    named = named.select(*schema.columns, _ROW)
    items = _items(named, schema, service, by_key=by_key)
    # Neighbours come to one task, which reads their words once.
    spread = items.repartition("batch_id", F.shiftright("ordinal", WINDOW_BITS))
    ordered = spread.sortWithinPartitions("batch_id", "ordinal")
    there = F.col("ordinal").isNotNull()
    item = [F.when(there, F.col(name)).otherwise(F.lit(ABSENT)) for name in ("batch_id", "ordinal")]

    def read(keys: Sequence[_Key]) -> dict[_Key, _Found]:
        told = dict[_Key, _Found]()
        for some in chunks(keys, max_items=_AT_ONCE):
            told |= states(some, service.ledger(), keys="key" in added, results=results)
        return told

    kind = "outcome string, why string, key string, result string"
    state = ordered.withColumn("_state", looked_up(read, kind, item))
    told = {name: F.col(f"_state.{name}") for name in added}
    told["outcome"] = F.coalesce("_state.outcome", F.lit("unknown"))
    told["why"] = F.coalesce("_state.why", "_unknown")
    return state.select(f"{_ROW}.*", *(column.alias(name) for name, column in told.items()))


def _items(named: DataFrame, schema: InputSchema, service: Service, *, by_key: bool) -> DataFrame:
    """The batch and the ordinal of the item that each row names, or why it names none."""

    def find(keys: Sequence[_Key]) -> dict[_Key, _Found]:
        items = find_items([name for (name,) in keys], IssuedItems(service), by_id=schema.by_id)
        found = ((None, None, *one) if isinstance(one, Refused) else (*one, None, None) for one in items)
        return dict(zip(keys, found, strict=True))

    normal = normalize(named, schema)
    if schema.by_id:
        name = decoded(F.col("item"))  # or Python could not read it
    else:
        name = F.coalesce("raw", F.concat("batch_id", F.lit(":"), "ordinal"))
    kind = "batch_id bigint, ordinal bigint, reason string, detail string"
    found = normal.withColumn("_item", looked_up(find, kind, [name]))
    unknown = F.coalesce("_item.detail", F.lit("it names no item"))
    if by_key:
        reason = F.coalesce("_item.reason", F.lit(Reason.NULL.value))
        no_ordinal = reason.isin(Reason.NULL.value, Reason.MALFORMED.value)
        unknown = F.when(no_ordinal, F.lit("there is no item with this key in its batch")).otherwise(unknown)
    unknown = F.when(F.col("_item.ordinal").isNull(), unknown)
    return found.select(_ROW, "_item.batch_id", "_item.ordinal", unknown.alias("_unknown"))


def looked_up(
    look: Callable[[Sequence[_Key]], Mapping[_Key, _Found]], kind: str, columns: Sequence[Column]
) -> Column:
    """Look up what belongs to some columns, as a structure: null where a key is null or ``ABSENT``.

    Args:
        look: gives what belongs to some keys, which are all different, and in order.
        kind: the columns of what it gives, such as ``reason string, detail string``.
        columns: the keys of a row.
    """
    names = [column.partition(" ")[0] for column in kind.split(", ")]

    def run(given: pd.DataFrame) -> pd.DataFrame:
        asked = list(zip(*(given[name].tolist() for name in given.columns), strict=True))
        there = sorted({key for key in asked if None not in key and ABSENT not in key})
        told: Mapping[_Key, _Found] = look(there) if there else {}
        nothing = [None] * len(names)
        return pd.DataFrame([told.get(key, nothing) for key in asked], columns=names, dtype=object)

    run.__annotations__ = {"given": pd.DataFrame, "return": pd.DataFrame}  # which Spark looks at
    keys = (column.alias(f"key_{place}") for place, column in enumerate(columns))
    return F.pandas_udf(run, kind)(F.struct(*keys))  # type: ignore[attr-defined, no-any-return]


def ordinals_of_keys(service: Service, batch_id: Column, key: Column, body: Column | None = None) -> Column:
    """The ordinals of the items of keys; null where there is none, which costs a read for each.

    With ``body``, the messages of the items, one that was added with another message has none.
    """
    columns = [F.coalesce(batch_id, F.lit(ABSENT)), decoded(key), F.lit("") if body is None else body]
    return looked_up(lambda keys: find_keys(keys, service.ledger()), "ordinal bigint", columns).getField(
        "ordinal"
    )


def find_keys(asked: Sequence[_Key], ledger: LedgerService) -> dict[_Key, _Found]:
    """Find the ordinals of items by batch, key and body; those of none are left out.

    The body is empty, or the message with which the item was to be added: one that was added with another
    message is left out, too.
    """
    keys: dict[int, list[str]] = {}
    for batch_id, key, _ in asked:
        with suppress(InvalidRequest):
            one = checked_key(key)
            keys.setdefault(batch_id, []).append(one)
    found = {batch_id: ledger.ports.parts.keys(batch_id, some) for batch_id, some in keys.items()}
    told = dict[_Key, _Found]()
    for batch_id, key, body in asked:
        row = found.get(batch_id, {}).get(key)
        if row and not (body and row.payload and row.payload != payload_digest(body)):
            told[batch_id, key, body] = (row.ordinal,)
    return told


def states(
    items: Sequence[_Key], ledger: LedgerService, *, keys: bool = False, results: bool = False
) -> dict[_Key, _Found]:
    """Read what became of some items: their words, those above, and the reasons of those that failed.

    Args:
        items: batch and ordinal of items of exact batches, each once and ordered.
        ledger: which is asked.
        keys: whether to read the keys of items, too, where their batch has any.
        results: whether to read the results of items that are done, too, where their batch keeps them.

    Returns:
        Of each item its outcome and why, its key and its result.
    """
    ordinals: dict[int, list[int]] = {}
    for batch_id, ordinal in items:
        ordinals.setdefault(batch_id, []).append(ordinal)
    batches = ledger.ports.batches.read(ordinals)
    told = dict[_Key, _Found]()
    for batch_id, some in ordinals.items():
        if batch := batches.get(batch_id):
            told |= _of_batch(ledger, batch, some, keys=keys, results=results)
        else:
            why = f"there is no batch {batch_id}"
            told |= {(batch_id, ordinal): ("unknown", why, None, None) for ordinal in some}
    return told


def _of_batch(
    ledger: LedgerService, batch: Batch, ordinals: Sequence[int], *, keys: bool, results: bool
) -> dict[_Key, _Found]:
    found, parts = _states(ledger, batch, ordinals), ledger.ports.parts
    # A held item is pending, and nothing but its note says that it has failed.
    noted = (ItemState.FAILED, ItemState.PENDING) if batch.holds else (ItemState.FAILED,)
    asked = [ordinal for ordinal, state in found.items() if state in noted]
    why = parts.reasons(batch.batch_id, asked) if asked else {}
    for ordinal in why:
        if found[ordinal] is ItemState.PENDING:
            found[ordinal] = ItemState.HELD
    named = parts.keys_of(batch.batch_id, ordinals) if keys and batch.keyed else {}
    done = [ordinal for ordinal, state in found.items() if results and state is ItemState.DONE]
    given = parts.results(batch.batch_id, done) if batch.results and done else {}
    told = {ordinal: _result(ledger, row) for ordinal, row in given.items()}
    return {
        (batch.batch_id, one): (str(found[one]), why.get(one), named.get(one), told.get(one))
        for one in ordinals
    }


def _result(ledger: LedgerService, row: ResultRow) -> str | None:
    """A result as JSON; None if the rules of the bucket have deleted it."""
    content = ledger.ports.claims.load([row.kept]).get(row.kept) if row.kept else row.content
    return content.decode() if content else None


def _states(ledger: LedgerService, batch: Batch, ordinals: Sequence[int]) -> dict[int, ItemState]:
    numbers = sorted({ordinal // _TREE.width for ordinal in ordinals})
    leaves = {number: WordKey(batch.batch_id, 0, number) for number in numbers}
    above = {
        number: {
            WordKey(batch.batch_id, mark.level, mark.number): mark.mask
            for mark in _TREE.ancestors(number, batch.items)
        }
        for number in numbers
    }
    # The words above come first: what lies below a cleared bit does not change any more, failures included.
    keys = set[WordKey]().union(*above.values())
    words = ledger.ports.words.read(keys) if keys else {}
    rows = ledger.ports.words.read_rows(list(leaves.values()))
    found: dict[int, ItemState] = {}
    for ordinal in ordinals:
        number, position = divmod(ordinal, _TREE.width)
        row, bit = rows.get(leaves[number], _UNTOUCHED), 1 << position
        if row.word & bit and all(words.get(key, _TREE.full) & mask for key, mask in above[number].items()):
            found[ordinal] = ItemState.PENDING
        else:
            found[ordinal] = ItemState.FAILED if row.failed & bit else ItemState.DONE
    return found
