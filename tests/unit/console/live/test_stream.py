from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.datastructures import Headers

from fanin.console.live import feeds
from fanin.console.live.feeds import Feeds, Read, View
from fanin.console.live.stream import events
from fanin.errors import Throttled


def told(read: Read, *, streams: bool) -> list[tuple[str, Any]]:
    """The events of an answer: name and data."""

    async def run() -> str:
        async def at_once(_seconds: float) -> None:
            await asyncio.sleep(0)

        answer = events(Feeds(at_once), "a", read, streams=streams)
        assert answer.media_type == "text/event-stream"
        if not streams:
            return bytes(answer.body).decode()
        parts = [str(part) async for part in answer.body_iterator]  # type: ignore[attr-defined]
        return "".join(parts).encode().decode()

    blocks = [block.split("\n") for block in asyncio.run(run()).split("\n\n") if block]
    assert blocks.pop(0)[0] == "retry: 5000"
    return [
        (lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))) for lines in blocks
    ]


def over() -> View:
    return View({"a": "<b>\n\u2028</b>"}, 1, over=True)


def busy() -> View:
    raise Throttled("busy")


@pytest.mark.parametrize("streams", [True, False])
def test_a_view_that_is_over_is_told_once(streams) -> None:
    assert told(over, streams=streams) == [("view", {"a": "<b>\n\u2028</b>"}), ("over", {})]


def test_where_an_answer_cannot_stay_open_it_has_one_view_or_trouble() -> None:
    assert told(lambda: View({"a": "1"}, 1), streams=False) == [("view", {"a": "1"})]
    # An answer that is not 200 would make the browser give up.
    assert told(busy, streams=False) == [("trouble", {"text": "busy", "seconds": 5.0})]


def test_a_view_too_many_is_told_in_its_answer(monkeypatch) -> None:
    # Given that no other view can be read
    monkeypatch.setattr(feeds, "FEEDS", 0)
    # When somebody follows one, then it is told why, and not that the view is over: a browser asks again
    ((name, data),) = told(over, streams=True)
    assert (name, data["seconds"]) == ("trouble", 5.0)
    assert "close some" in data["text"]


def asked_again(read: Read, last: str) -> tuple[int, str, str]:
    """After how many ms a browser asks again, the id that it keeps, and the rest of the answer."""
    answer = events(Feeds(), "a", read, streams=False, headers=Headers({"last-event-id": last}))
    about, _, rest = bytes(answer.body).decode().partition("\n\n")
    retry, kept = about.split("\n")
    return int(retry.removeprefix("retry: ")), kept.removeprefix("id: "), rest


def test_a_browser_asks_later_and_later_while_nothing_changes() -> None:
    # Given a browser that asks for a view again and again, whichever process answers
    waits, last = [], ""
    for _ in range(7):
        wait, last, told_now = asked_again(lambda: View({"a": "1 s ago"}, (1, "é\ud800")), last)
        waits.append(wait)
        assert "event: view" in told_now
    # Then it waits as long as a reader does
    assert waits == [5_000, 7_500, 11_250, 16_875, 25_312, 30_000, 30_000]
    # When something changes, Then it asks soon again
    wait, last, _ = asked_again(lambda: View({"a": "1 s ago"}, (2, "é")), last)
    assert wait == 5_000


def test_a_browser_asks_later_and_later_while_the_service_is_overloaded() -> None:
    last = ""
    for _ in range(9):
        wait, last, rest = asked_again(busy, last)
    assert (wait, '"seconds": 60.0' in rest) == (60_000, True)


@pytest.mark.parametrize("last", ["x", "0.0", "0" * 16 + ".1000", "0123456789abcdef.-1", "\xb2" * 16 + ".1"])
def test_an_id_that_is_not_its_own_is_ignored(last) -> None:
    assert asked_again(over, last)[0] == 5_000


def test_a_view_that_ends_with_the_console_is_not_over() -> None:
    async def run() -> list[str]:
        feeds = Feeds()
        answer = events(feeds, "a", lambda: View({"a": "1"}, 1), streams=True)
        parts: list[str] = []
        async for part in answer.body_iterator:  # type: ignore[attr-defined]
            parts.append(str(part))
            if "event: view" in parts[-1]:
                feeds.close()
        return parts

    assert [part.partition("\n")[0] for part in asyncio.run(run())] == ["retry: 5000", "event: view"]


@pytest.mark.parametrize("streams", [True, False])
def test_a_text_that_utf8_cannot_carry_is_told(streams) -> None:
    ((_, shown), _) = told(lambda: View({"a": "x\udc00"}, 1, over=True), streams=streams)
    assert shown == {"a": "x\udc00"}
