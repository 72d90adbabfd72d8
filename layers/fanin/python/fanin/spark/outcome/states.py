"""What tasks read of items: what became of them, from their words and the notes; their keys and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import ResultRow
from fanin.app.ports.words import WordKey, WordRow
from fanin.domain.batch import Batch
from fanin.domain.keys import checked_key, payload_digest
from fanin.domain.picture import ItemState
from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest
from fanin.spark.runtime.arrow import ArrowBatches, page
from fanin.spark.runtime.service import Service

ITEMS: Final = pa.schema([("batch_id", pa.int64()), ("ordinal", pa.int64())])
STATES: Final = pa.schema([*ITEMS, *((name, pa.string()) for name in ("outcome", "why", "key", "result"))])
KEYS: Final = pa.schema([("batch_id", pa.int64()), ("key", pa.string()), ("body", pa.string())])
"""Names of items by their keys; ``body`` is empty, or the message with which the item was to be added."""
KEYED: Final = pa.schema([*KEYS, ("ordinal", pa.int64())])
_AT_ONCE: Final = 10_000
_TREE: Final = Tree()
_Row = tuple[int, int, str, str | None, str | None, str | None]
_UNTOUCHED: Final = WordRow(_TREE.full, 0, {})


def read_states_task(
    service: Service, *, keys: bool = False, results: bool = False
) -> Callable[[Iterable[ArrowBatches]], Iterator[ArrowBatches]]:
    """Make the function of a task that reads what became of items.

    Args:
        service: the stack.
        keys: whether to read the keys of items, too, where their batch has any.
        results: whether to read the results of items that are done, too, where their batch keeps them.

    Returns:
        A function that takes ``batch_id`` and ``ordinal`` of items of exact batches, each once and ordered,
        so that items of a word are next to each other; and gives ``STATES`` of each.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        for record in records:
            for start in range(0, record.num_rows, _AT_ONCE):
                some = record.slice(start, _AT_ONCE)
                yield states(some, service.ledger(), keys=keys, results=results)

    return run


def find_keys_task(service: Service) -> Callable[[Iterable[ArrowBatches]], Iterator[ArrowBatches]]:
    """Make the function of a task that finds the items of keys: it takes ``KEYS`` and gives ``KEYED``."""

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        for record in records:
            yield find_keys(record, service.ledger())

    return run


def find_keys(record: ArrowBatches, ledger: LedgerService) -> ArrowBatches:
    """Find the items of some keys; one that is not there, or has another message, has no ordinal."""
    asked = list(zip(*(column.to_pylist() for column in record.columns), strict=True))
    keys: dict[int, list[str]] = {}
    for batch_id, key, _ in asked:
        if _is_key(key):
            keys.setdefault(batch_id, []).append(key)
    found = {
        (batch_id, key): row
        for batch_id, some in keys.items()
        for key, row in ledger.ports.parts.keys(batch_id, some).items()
    }
    rows = []
    for batch_id, key, body in asked:
        row = found.get((batch_id, key))
        same = row and not (body and row.payload and row.payload != payload_digest(body))
        rows.append((batch_id, key, body, row.ordinal if row and same else None))
    return page(KEYED, rows)


def _is_key(key: str) -> bool:
    try:
        return bool(checked_key(key))
    except InvalidRequest:
        return False


def states(
    record: ArrowBatches, ledger: LedgerService, *, keys: bool = False, results: bool = False
) -> ArrowBatches:
    """Read what became of some items: their words, those above, and the reasons of those that failed."""
    ordinals: dict[int, list[int]] = {}
    for batch_id, ordinal in zip(*(column.to_pylist() for column in record.columns[:2]), strict=True):
        ordinals.setdefault(batch_id, []).append(ordinal)
    batches = ledger.ports.batches.read(ordinals)
    rows: list[_Row] = []
    for batch_id, some in ordinals.items():
        if batch_id not in batches:
            why = f"there is no batch {batch_id}"
            rows += [(batch_id, ordinal, "unknown", why, None, None) for ordinal in some]
            continue
        rows += _of_batch(ledger, batches[batch_id], some, keys=keys, results=results)
    return page(STATES, rows)


def _of_batch(
    ledger: LedgerService, batch: Batch, ordinals: Sequence[int], *, keys: bool, results: bool
) -> list[_Row]:
    found = _states(ledger, batch, ordinals)
    # A held item is pending, and nothing but its note says that it has failed.
    noted = (ItemState.FAILED, ItemState.PENDING) if batch.holds else (ItemState.FAILED,)
    asked = [ordinal for ordinal, state in found.items() if state in noted]
    why = ledger.ports.parts.reasons(batch.batch_id, asked) if asked else {}
    for ordinal in why:
        if found[ordinal] is ItemState.PENDING:
            found[ordinal] = ItemState.HELD
    parts = ledger.ports.parts
    named = parts.keys_of(batch.batch_id, ordinals) if keys and batch.keyed else {}
    done = [ordinal for ordinal, state in found.items() if results and state is ItemState.DONE]
    given = parts.results(batch.batch_id, done) if batch.results and done else {}
    return [
        (
            batch.batch_id,
            ordinal,
            str(found[ordinal]),
            why.get(ordinal),
            named.get(ordinal),
            _result(ledger, given[ordinal]) if ordinal in given else None,
        )
        for ordinal in ordinals
    ]


def _result(ledger: LedgerService, row: ResultRow) -> str | None:
    """A result as JSON; None if the rules of the bucket have deleted it."""
    content = ledger.ports.claims.load([row.kept]).get(row.kept) if row.kept else row.content
    return content.decode() if content else None


def _states(ledger: LedgerService, batch: Batch, ordinals: Sequence[int]) -> dict[int, ItemState]:
    """What the words say of items, by ordinal."""
    places = {ordinal: divmod(ordinal, _TREE.width) for ordinal in ordinals}
    numbers = {number for number, _ in places.values()}
    keys = [WordKey(batch.batch_id, 0, number) for number in sorted(numbers)]
    # The words above come first: what lies below a cleared bit does not change any more, failures included.
    whole = _below_cleared(ledger, batch.batch_id, numbers, _TREE.root_level(batch.items))
    leaves = ledger.ports.words.read_rows(keys)
    found: dict[int, ItemState] = {}
    for ordinal, (number, position) in places.items():
        row, bit = leaves.get(WordKey(batch.batch_id, 0, number), _UNTOUCHED), 1 << position
        if row.word & bit and number not in whole:
            found[ordinal] = ItemState.PENDING
        else:
            found[ordinal] = ItemState.FAILED if row.failed & bit else ItemState.DONE
    return found


def _below_cleared(ledger: LedgerService, batch_id: int, numbers: Iterable[int], root: int) -> set[int]:
    """The words of level 0 that lie below a cleared bit, on whatever level."""
    levels = range(1, root + 1)
    keys = {WordKey(batch_id, level, number >> 6 * level) for level in levels for number in numbers}
    words = ledger.ports.words.read(keys) if keys else {}
    return {
        number
        for number in numbers
        if any(
            not words.get(WordKey(batch_id, level, number >> 6 * level), _TREE.full)
            >> (number >> 6 * (level - 1)) % _TREE.width
            & 1
            for level in levels
        )
    }
