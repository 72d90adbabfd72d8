"""The function of the tasks that read what became of items, from their words and the notes of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import WordKey, WordRow
from fanin.domain.batch import Batch
from fanin.domain.picture import ItemState
from fanin.domain.tree import Tree
from fanin.spark.runtime.arrow import Records, page
from fanin.spark.runtime.service import Service

ITEMS: Final = pa.schema([("batch_id", pa.int64()), ("ordinal", pa.int64())])
STATES: Final = pa.schema([*ITEMS, ("outcome", pa.string()), ("why", pa.string())])
_AT_ONCE: Final = 10_000
_TREE: Final = Tree()
_Row = tuple[int, int, str, str | None]
_UNTOUCHED: Final = WordRow(_TREE.full, 0, {})


def read_states_task(service: Service) -> Callable[[Iterable[Records]], Iterator[Records]]:
    """Make the function of a task that reads what became of items.

    Args:
        service: the stack.

    Returns:
        A function that takes ``batch_id`` and ``ordinal`` of items of exact batches, each once and ordered,
        so that items of a word are next to each other; and gives ``STATES`` of each.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        for record in records:
            for start in range(0, record.num_rows, _AT_ONCE):
                yield states(record.slice(start, _AT_ONCE), service.ledger())

    return run


def states(record: Records, ledger: LedgerService) -> Records:
    """Read what became of some items: their words, those above, and the reasons of those that failed."""
    ordinals: dict[int, list[int]] = {}
    for batch_id, ordinal in zip(*(column.to_pylist() for column in record.columns[:2]), strict=True):
        ordinals.setdefault(batch_id, []).append(ordinal)
    batches = ledger.ports.batches.read(ordinals)
    rows: list[_Row] = []
    for batch_id, some in ordinals.items():
        if batch_id not in batches:
            rows += [(batch_id, ordinal, "unknown", f"there is no batch {batch_id}") for ordinal in some]
            continue
        rows += _of_batch(ledger, batches[batch_id], some)
    return page(STATES, rows)


def _of_batch(ledger: LedgerService, batch: Batch, ordinals: Sequence[int]) -> list[_Row]:
    found = _states(ledger, batch, ordinals)
    # A held item is pending, and nothing but its note says that it has failed.
    noted = (ItemState.FAILED, ItemState.PENDING) if batch.holds else (ItemState.FAILED,)
    asked = [ordinal for ordinal, state in found.items() if state in noted]
    why = ledger.ports.parts.reasons(batch.batch_id, asked) if asked else {}
    for ordinal in why:
        if found[ordinal] is ItemState.PENDING:
            found[ordinal] = ItemState.HELD
    return [(batch.batch_id, ordinal, str(found[ordinal]), why.get(ordinal)) for ordinal in ordinals]


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
