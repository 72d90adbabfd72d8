"""How much time an invocation has left for work."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from fanin.adapters.dynamodb import Connection
from fanin.entry.invocation import INVOCATION, RESERVE, Invocation
from fanin.entry.observe import observed


def test_outside_of_an_invocation_there_is_no_limit() -> None:
    assert Invocation().seconds_left() == math.inf


def test_work_ends_before_the_invocation_does() -> None:
    now = [100.0]
    invocation = Invocation(lambda: now[0])
    invocation.begin(30)
    assert invocation.seconds_left() == 30 - RESERVE
    now[0] += 25
    assert invocation.seconds_left() < 0
    invocation.end()
    assert invocation.seconds_left() == math.inf


def test_the_longest_attempt_that_a_client_of_the_tables_begins_ends_before_the_invocation_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given the clients of the tables, as functions make them
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    connection = Connection(time_left=INVOCATION.seconds_left)

    # Then an attempt of theirs takes less than what is reserved, and leaves time to answer
    for client in (connection.client, connection.once):
        config = client.meta.config
        assert config.connect_timeout + config.read_timeout <= RESERVE - 2


def test_a_short_invocation_works_for_two_thirds_of_its_time() -> None:
    invocation = Invocation(lambda: 0.0)
    invocation.begin(3)
    assert invocation.seconds_left() == 2


def test_a_handler_knows_its_time_and_leaves_none_behind(context: SimpleNamespace) -> None:
    seen: list[float] = []

    @observed
    def handler(event: dict[str, Any], context: Any) -> None:
        seen.append(INVOCATION.seconds_left())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        handler({}, context)
    assert 250 < seen[0] <= 290  # the first trace of a process takes some of it
    assert INVOCATION.seconds_left() == math.inf
