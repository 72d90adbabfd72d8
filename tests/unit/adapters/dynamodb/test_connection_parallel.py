"""Calls in parallel, and the client that they share."""

from collections.abc import Callable
from threading import Barrier
from typing import Any

import pytest

from fanin.adapters.dynamodb import Connection
from fanin.errors import Throttled


def test_several_calls_go_at_once(connection: Connection) -> None:
    barrier = Barrier(4)

    def call(number: int) -> int:
        barrier.wait(timeout=10)  # passes only if all four are under way together
        return number * 2

    assert connection.map(call, [1, 2, 3, 4]) == [2, 4, 6, 8]


def test_one_call_needs_neither_thread_nor_client() -> None:
    connection = Connection(never)

    assert connection.map(abs, [-3]) == [3]
    assert connection.map(abs, []) == []


def test_an_error_of_one_call_reaches_the_caller(connection: Connection) -> None:
    def call(number: int) -> int:
        if number == 2:
            raise Throttled("slow")
        return number

    with pytest.raises(Throttled):
        connection.map(call, [1, 2, 3])


def test_the_client_is_made_once_and_late(client: Any) -> None:
    made: list[int] = []

    def make() -> Any:
        made.append(1)
        return client

    connection = Connection(make)
    assert made == []

    assert connection.client is connection.client
    assert made == [1]


never: Callable[[], Any] = lambda: pytest.fail("a client was made")  # noqa: E731
