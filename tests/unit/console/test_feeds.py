"""Live views: the events that a browser gets, and when it asks again."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fanin.console.feeds import View, events
from fanin.errors import Throttled


def asked_again(read: Callable[[], View], last: str = "", soonest: float = 1.0) -> tuple[int, str, str]:
    """After how many ms a browser asks again, the id that it keeps, and the rest of the answer."""
    answer = events(read, last=last, soonest=soonest)
    assert answer.media_type == "text/event-stream"
    about, _, rest = bytes(answer.body).decode().partition("\n\n")
    retry, kept = about.split("\n")
    return int(retry.removeprefix("retry: ")), kept.removeprefix("id: "), rest


def told(read: Callable[[], View]) -> list[tuple[str, Any]]:
    """The events of an answer: name and data."""
    blocks = [block.split("\n") for block in asked_again(read)[2].split("\n\n") if block]
    return [
        (lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))) for lines in blocks
    ]


def over() -> View:
    return View({"a": "<b>\n\u2028</b>"}, 1, over=True)


def busy() -> View:
    raise Throttled("busy")


def test_an_answer_has_one_view_or_trouble_and_says_if_it_was_the_last():
    assert told(lambda: View({"a": "1"}, 1)) == [("view", {"a": "1"})]
    assert told(over) == [("view", {"a": "<b>\n\u2028</b>"}), ("over", {})]
    # An answer that is not 200 would make the browser give up.
    assert told(busy) == [("trouble", {"text": "busy", "seconds": 1.0})]


@pytest.mark.parametrize(
    ("soonest", "waits"),
    [(5, [5_000, 7_500, 11_250, 16_875, 25_312, 30_000, 30_000]), (1, [1_000, 1_500, 2_250, 3_375])],
)
def test_a_browser_asks_later_and_later_while_nothing_changes(soonest, waits):
    # Given a browser that asks for a view again and again, whichever process answers
    found, last = [], ""
    for _ in waits:
        wait, last, told_now = asked_again(lambda: View({"a": "1 s ago"}, (1, "é\ud800")), last, soonest)
        found.append(wait)
        assert "event: view" in told_now
    assert found == waits
    # When something changes, Then it asks soon again
    wait, last, _ = asked_again(lambda: View({"a": "1 s ago"}, (2, "é")), last, soonest)
    assert wait == soonest * 1000


def test_a_browser_asks_later_and_later_while_the_service_is_overloaded():
    last = ""
    for _ in range(12):
        wait, last, rest = asked_again(busy, last)
    assert (wait, '"seconds": 60.0' in rest) == (60_000, True)


def test_a_service_that_says_how_long_to_wait_is_not_asked_before():
    def rests() -> View:
        raise Throttled("busy", retry_after=7)

    assert asked_again(rests)[0] == 7_000


@pytest.mark.parametrize("last", ["x", "0.0", "0" * 16 + ".1000", "0123456789abcdef.-1", "\xb2" * 16 + ".1"])
def test_an_id_that_is_not_its_own_is_ignored(last):
    assert asked_again(over, last)[0] == 1_000


def test_a_text_that_utf8_cannot_carry_is_told():
    ((_, shown),) = told(lambda: View({"a": "x\udc00"}, 1))
    assert shown == {"a": "x\udc00"}
