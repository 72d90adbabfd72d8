"""Messages that could not be handled: parked, put back, or postponed."""

import logging
from typing import Any

import pytest

from fanin import names
from fanin.domain.batch import State
from fanin.domain.marks import Receipt
from fanin.entry.jobs import handle_each
from fanin.entry.partial_batch import ACKS, LEAST, SqsRecord
from fanin.entry.queues import Handled
from fanin.entry.unhandled import respond
from fanin.errors import InvalidRequest, Throttled

BUSY = Throttled("slow down")


def message(name: str, received: int = 1, body: str = "whole") -> dict[str, Any]:
    return {"messageId": name, "body": body, "attributes": {"ApproximateReceiveCount": str(received)}}


def again(answer: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def broken(*_: Any) -> None:
    raise Throttled("the queue is busy")


class Calls(list[Any]):
    """Collects what a function is called with."""

    def __call__(self, *arguments: Any) -> None:
        self.append(arguments)


def test_nothing_to_hand_over_returns_nothing():
    assert again(respond(Handled(), broken, lambda waits: None, broken)) == []


def test_each_message_goes_where_it_belongs(measured):
    # Given poison, messages that were throttled, one of which a part is left, and one with a defect
    handled = Handled(
        receipts=[Receipt(7, "", State.OPEN, first=3)],
        poison=[(message("poison"), InvalidRequest("nonsense"))],
        again=[(message("busy"), BUSY), (message("defect"), ZeroDivisionError())],
        rests=[(message("part", 9, "rest"), BUSY)],
    )
    park, postpone, put_back = Calls(), Calls(), Calls()

    answer = respond(handled, park, postpone, put_back)
    # Then the queue returns those that come again as they are, and delays only those that overload left
    assert again(answer) == ["busy", "defect"]
    assert [parked["messageId"] for (parked,) in park] == ["poison"]
    [([(delayed, _)],)] = postpone
    assert delayed["messageId"] == "busy"
    [(rest, seconds)] = put_back
    assert rest["body"] == "rest"
    assert LEAST <= seconds <= ACKS.cap
    figures = measured()
    assert (figures[names.METRIC_POSTPONED], figures[names.METRIC_PARKED]) == ([2.0], [1.0])
    assert figures[names.METRIC_FIRST] == [3.0]


def test_a_message_that_cannot_be_parked_is_not_put_back_beside_it():
    """It comes again whole, so its rest would come twice."""
    handled = Handled(
        poison=[(message("m", body="unknown"), InvalidRequest("bad"))],
        rests=[(message("m", body="rest"), BUSY)],
    )
    put_back = Calls()

    assert again(respond(handled, broken, lambda waits: None, put_back)) == ["m"]
    assert put_back == []


def test_a_rest_that_cannot_be_put_back_comes_again_with_all_of_its_message():
    handled = Handled(rests=[(message("m", body="rest"), BUSY)])
    assert again(respond(handled, broken, lambda waits: None, broken)) == ["m"]


@pytest.mark.parametrize("park", [Calls(), broken])
def test_what_is_to_be_kept_is_parked_once_unless_it_comes_again(park):
    kept, poison, busy = message("kept"), message("poison"), message("busy")
    handled = Handled(poison=[(poison, InvalidRequest("bad"))], again=[(busy, BUSY)])

    answer = respond(handled, park, lambda waits: None, keep=[kept, poison, busy])

    if park is broken:
        assert again(answer) == ["busy", "kept", "poison"]
    else:
        assert (again(answer), park) == (["busy"], [(poison,), (kept,)])


def test_the_log_has_one_line_for_all_that_come_again(caplog):
    caplog.set_level(logging.WARNING)
    respond(Handled(again=[(message(f"m{n}"), BUSY) for n in range(5)]), broken, lambda waits: None)

    (line,) = [record for record in caplog.records if record.getMessage() == "messages postponed"]
    assert (vars(line)["messages"], vars(line)["codes"]) == (5, ["throttled"])


def test_a_message_that_fails_comes_again_and_holds_up_no_other():
    # Given messages of which one meets a busy store, and one brings a defect to light
    event = {"Records": [{"messageId": name, "body": name} for name in ("good", "busy", "defect", "last")]}
    handled: list[str] = []

    def handle(message: SqsRecord) -> None:
        if message["body"] == "busy":
            raise Throttled("busy")
        if message["body"] == "defect":
            raise KeyError("missing")
        handled.append(message["body"])

    response = handle_each(event, handle)

    assert handled == ["good", "last"]
    assert response == {"batchItemFailures": [{"itemIdentifier": "busy"}, {"itemIdentifier": "defect"}]}
