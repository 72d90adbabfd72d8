"""Buffers on the wire: levels, and defaults that are those of the calls."""

import inspect
import json

import pytest

from fanin.app.api import Buffers
from fanin.domain.buffer import Buffer, DoneWork, FailedWork, Level
from fanin.entry.http.validation import checked
from fanin.errors import InvalidRequest
from fanin.wire.patterns import BUFFER, DEFINE_BUFFER, DONE_WORK, LEVEL, PUT_WORK, TAKE_WORK

BUFFER_OF_JOBS = Buffer("jobs", 9, "https://sqs/jobs", owned=True, batch_id=7)


def test_a_level_stands_beside_its_buffer_in_one_object():
    level = LEVEL.encode(Level(BUFFER_OF_JOBS, count=1, pending=2, taken=1, draining=False))
    assert level.items() >= BUFFER.encode(BUFFER_OF_JOBS).items()
    assert (level["count"], level["pending"], level["taken"], level["draining"]) == (1, 2, 1, False)


def test_the_count_is_below_zero_where_consumers_wait():
    level = LEVEL.encode(Level(BUFFER_OF_JOBS, count=-2, pending=0, taken=0, draining=False))
    assert checked(LEVEL, json.dumps(level))["count"] == -2


@pytest.mark.parametrize("name", ["most", "wait"])
def test_what_a_take_leaves_out_is_what_the_call_leaves_out(name):
    default = inspect.signature(Buffers.take).parameters[name].default
    assert TAKE_WORK.definition["properties"][name]["default"] == default


def test_a_queue_may_be_null_and_not_empty():
    assert checked(DEFINE_BUFFER, '{"limit": 1, "queue": null}') == {"limit": 1, "queue": None}
    with pytest.raises(InvalidRequest, match="/queue must be text"):
        checked(DEFINE_BUFFER, '{"limit": 1, "queue": ""}')


def test_a_put_has_work_in_it():
    with pytest.raises(InvalidRequest, match="/payloads must be an array of 1 to 10 values, not empty"):
        checked(PUT_WORK, '{"payloads": []}')
    with pytest.raises(InvalidRequest, match="/payloads/0 must be text"):
        checked(PUT_WORK, '{"payloads": [""]}')


def test_the_failures_of_work_may_be_left_out():
    assert DONE_WORK.decode(checked(DONE_WORK, '{"receipts": ["r"]}')) == DoneWork(("r",))
    done = DoneWork((), (FailedWork("r", "no such scene"),))
    assert DONE_WORK.decode(DONE_WORK.encode(done)) == done
