"""Messages that could not be handled: parked, put back, or postponed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from fanin import names
from fanin.entry.unhandled import LEAST_PAUSE, PAUSES, Unhandled
from fanin.errors import InvalidRequest, OutcomeUnknown, Throttled


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


@pytest.fixture
def unhandled() -> Unhandled:
    return Unhandled()


def test_nothing_to_hand_over_returns_nothing(unhandled: Unhandled) -> None:
    assert again(unhandled.response(broken, lambda waits: None, broken)) == []


def test_each_message_goes_where_it_belongs(unhandled: Unhandled, measured: Any) -> None:
    # Given poison, a message that was throttled, one that was put back, and one with a defect
    unhandled.refuse(message("poison"), InvalidRequest("nonsense"))
    unhandled.postpone(message("busy"), Throttled("slow down"))
    unhandled.put_back(message("part", 9, "rest"), Throttled("slow down"))
    unhandled.postpone(message("defect"), ZeroDivisionError())
    park, postpone, put_back = Calls(), Calls(), Calls()

    # When they are handed over
    answer = unhandled.response(park, postpone, put_back)

    # Then the queue returns those that come again as they are, and delays only those that overload left
    assert again(answer) == ["busy", "defect"]
    assert [parked["messageId"] for (parked,) in park] == ["poison"]
    [([(delayed, _)],)] = postpone
    assert delayed["messageId"] == "busy"
    [(rest, seconds)] = put_back
    assert rest["body"] == "rest"
    assert LEAST_PAUSE <= seconds <= PAUSES.cap
    figures = measured()
    assert (figures[names.METRIC_POSTPONED], figures[names.METRIC_PARKED]) == ([2.0], [1.0])


def test_a_message_that_cannot_be_parked_is_not_put_back_beside_it(unhandled: Unhandled) -> None:
    """It comes again whole, so its rest would come twice."""
    unhandled.refuse(message("m", body="unknown"), OutcomeUnknown("no answer"))
    unhandled.put_back(message("m", body="rest"), OutcomeUnknown("no answer"))
    put_back = Calls()

    assert again(unhandled.response(broken, lambda waits: None, put_back)) == ["m"]
    assert put_back == []


@pytest.mark.parametrize("put_back", [None, broken])
def test_a_rest_that_cannot_be_put_back_comes_again_with_all_of_its_message(
    unhandled: Unhandled, put_back: Any
) -> None:
    unhandled.put_back(message("m", body="rest"), Throttled("slow down"))
    assert again(unhandled.response(broken, lambda waits: None, put_back)) == ["m"]


def test_the_log_has_one_line_for_all_that_come_again(unhandled: Unhandled, caplog: Any) -> None:
    caplog.set_level(logging.WARNING)
    for n in range(5):
        unhandled.postpone(message(f"m{n}"), Throttled("slow down"))

    unhandled.response(broken, lambda waits: None)

    (line,) = [record for record in caplog.records if record.getMessage() == "messages postponed"]
    assert (line.messages, line.codes) == (5, ["throttled"])
