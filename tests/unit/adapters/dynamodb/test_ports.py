"""The stores take what their ports say: a page without a size is as long in each of them."""

from __future__ import annotations

import inspect

import pytest

from fanin.adapters.dynamodb import DynamoBatches, DynamoParts, DynamoRecords, DynamoWords
from fanin.adapters.memory import MemoryBatches, MemoryParts, MemoryRecords, MemoryWords
from fanin.app.ports.batches import BatchStore
from fanin.app.ports.parts import PartStore
from fanin.app.ports.records import Records
from fanin.app.ports.words import WordStore

PORTS = {
    DynamoBatches: BatchStore,
    DynamoParts: PartStore,
    DynamoRecords: Records,
    DynamoWords: WordStore,
    MemoryBatches: BatchStore,
    MemoryParts: PartStore,
    MemoryRecords: Records,
    MemoryWords: WordStore,
}


@pytest.mark.parametrize("store", PORTS)
def test_a_store_has_the_calls_of_its_port_with_the_same_defaults(store: type) -> None:
    calls = {
        name: inspect.signature(call)
        for name, call in vars(PORTS[store]).items()
        if inspect.isfunction(call) and not name.startswith("_")
    }

    assert calls
    assert {name: inspect.signature(getattr(store, name)) for name in calls} == calls
