"""How much time an invocation has left for work."""

import math
from typing import Any

import pytest

from fanin.app.buffers.service import SIFT_MS
from fanin.domain import limits
from fanin.entry import wiring
from fanin.entry.invocation import ANSWER, INVOCATION, REQUEST_RESERVE, RESERVE, Invocation
from fanin.entry.observe import observed
from fanin.errors import Throttled


def test_outside_of_an_invocation_there_is_no_limit():
    assert Invocation().seconds_left() == math.inf


def test_work_ends_before_the_invocation_does():
    now = [100.0]
    invocation = Invocation(lambda: now[0])
    invocation.begin(30)
    assert invocation.seconds_left() == 30 - RESERVE
    now[0] += 25
    assert invocation.seconds_left() < 0
    invocation.end()
    assert invocation.seconds_left() == math.inf


def test_the_longest_attempt_that_a_client_of_the_tables_begins_ends_before_the_invocation_does(monkeypatch):
    # Given the clients of the tables, as functions make them
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    connection = wiring.connect_tables()
    # Then an attempt of theirs takes less than what is reserved, and leaves time to answer
    for client in (connection.client, connection.once):
        config = client.meta.config
        assert config.connect_timeout + config.read_timeout + ANSWER <= REQUEST_RESERVE
    # And they begin none in that time
    now = [0.0]
    monkeypatch.setattr(INVOCATION, "_now", lambda: now[0])
    INVOCATION.begin(30)
    now[0] = 30 - REQUEST_RESERVE
    try:
        with pytest.raises(Throttled, match="the time for this call is up"):
            connection.query({"TableName": "t"})
    finally:
        INVOCATION.end()


def test_work_that_has_begun_may_go_on_when_no_other_may_begin():
    now = [0.0]
    invocation = Invocation(lambda: now[0])
    invocation.begin(30)
    now[0] = 21
    assert invocation.seconds_left() < 0 < invocation.seconds_for_requests()
    now[0] = 23.5
    assert invocation.seconds_for_requests() < 0
    invocation.end()
    assert invocation.seconds_for_requests() == math.inf


def test_a_take_that_waits_as_long_as_it_may_can_still_read_what_it_received():
    """The API answers within 30 seconds, of which a take may wait for 20."""
    invocation = Invocation(lambda: 0.0)
    invocation.begin(30)
    assert invocation.seconds_for_requests() > limits.MAX_WAIT + SIFT_MS / 1000


def test_a_short_invocation_works_for_two_thirds_of_its_time():
    invocation = Invocation(lambda: 0.0)
    invocation.begin(3)
    assert invocation.seconds_left() == 2


def test_a_handler_knows_its_time_and_leaves_none_behind(context):
    seen: list[float] = []

    @observed
    def handler(event: dict[str, Any], context: Any) -> None:
        seen.append(INVOCATION.seconds_left())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        handler({}, context)
    assert 250 < seen[0] <= 290  # the first trace of a process takes some of it
    assert INVOCATION.seconds_left() == math.inf
