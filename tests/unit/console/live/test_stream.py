from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

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
    assert blocks.pop(0) == ["retry: 5000"]
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


def test_where_an_answer_cannot_stay_open_it_has_one_view() -> None:
    assert told(lambda: View({"a": "1"}, 1), streams=False) == [("view", {"a": "1"})]


def test_where_an_answer_cannot_stay_open_trouble_is_told_too() -> None:
    # An answer that is not 200 would make the browser give up.
    assert told(busy, streams=False) == [("trouble", {"text": "busy", "seconds": 5.0})]


def test_a_view_too_many_is_told_in_its_answer(monkeypatch) -> None:
    # Given that no other view can be read
    monkeypatch.setattr(feeds, "FEEDS", 0)
    # When somebody follows one, then it is told why, and not that the view is over: a browser asks again
    ((name, data),) = told(over, streams=True)
    assert (name, data["seconds"]) == ("trouble", 5.0)
    assert "close some" in data["text"]


@pytest.mark.parametrize("streams", [True, False])
def test_a_text_that_utf8_cannot_carry_is_told(streams) -> None:
    ((_, shown), _) = told(lambda: View({"a": "x\udc00"}, 1, over=True), streams=streams)
    assert shown == {"a": "x\udc00"}
