"""Twins: the stores in memory, and beside them the stores on DynamoDB, which must give the same answers."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fanin.adapters.memory import Accesses, FixedClock, Memory, OnCall
from fanin.app.ports import Ports
from fanin.app.ports.batches import BatchRows
from fanin.app.ports.words import Clear, Cleared
from fanin.domain.tree import Tree
from fanin.errors import FaninError
from tests.integration.conftest import Dynamo, Stores, on_dynamodb


class Apart(AssertionError):
    """The two stores gave different answers."""


class Twin:
    """One port, kept by two stores: each call goes to both, as one access.

    Args:
        name: of the port.
        first: the store in memory, whose answers count.
        second: the store on DynamoDB.
        accesses: lets other actors run around each call, and loses answers.
    """

    def __init__(self, name: str, first: Any, second: Any, accesses: Accesses) -> None:
        self._name = name
        self._first = first
        self._second = second
        self._accesses = accesses

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._accesses.write(
                f"{self._name}.{method}",
                lambda: self._both(method, args, kwargs),
                once=method in {"allocate", "allocate_counted", "count"},
            )

        return call

    def _both(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        def ask(store: Any) -> Any:
            try:
                answer = getattr(store, method)(*args, **kwargs)
                return list(answer) if method == "due" else answer
            except FaninError as error:
                return error

        ours, theirs = ask(self._first), ask(self._second)
        if _comparable(ours) != _comparable(theirs):
            raise Apart(f"{self._name}.{method}{args} {kwargs}: {ours} in memory, {theirs} on DynamoDB")
        if isinstance(ours, FaninError):
            raise ours
        return ours


class TwinWords(Twin):
    """Words, which are written one by one, so that other actors run in between."""

    def clear(self, clears: Sequence[Clear]) -> list[Cleared]:
        one = super().__getattr__("clear")
        return [cleared for clear in clears for cleared in one([clear])]


def on_second_store(clock: FixedClock | None = None, tree: Tree | None = None) -> Dynamo:
    """New tables on the second store."""
    return on_dynamodb(os.environ["FANIN_SECOND_ENDPOINT"], tree, clock)


def ports_on(memory: Memory, stores: Stores) -> Ports:
    """The ports of a memory, but with these stores."""
    return replace(
        memory.ports(),
        batches=stores.batches,
        words=stores.words,
        parts=stores.parts,
        records=stores.records,
        directory=stores.directory,
    )


def twins(memory: Memory, second: Stores, on_call: OnCall) -> Ports:
    """The ports of a memory without onlookers, with the stores doubled; ``on_call`` runs around each call."""
    accesses, ports = Accesses(on_call), memory.ports()
    return replace(
        ports,
        batches=Twin("batches", ports.batches, second.batches, accesses),
        words=TwinWords("words", ports.words, second.words, accesses),
        parts=Twin("parts", ports.parts, second.parts, accesses),
        records=Twin("records", ports.records, second.records, accesses),
        directory=Twin("directory", ports.directory, second.directory, accesses),
    )


def _comparable(answer: Any) -> Any:
    """What must be equal: of a refusal its kind, of a page its rows in any order, since ties have none."""
    match answer:
        case FaninError():
            return type(answer)
        case list() if all(isinstance(one, int) for one in answer):
            return sorted(answer)
        case BatchRows():
            return sorted(answer.batches, key=lambda row: row.batch_id), answer.cursor is None
        case [[*rows], None | str()]:  # DynamoDB gives a cursor also after the very last row
            return rows
        case _:
            return answer
