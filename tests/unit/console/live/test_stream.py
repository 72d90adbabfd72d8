from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

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
        return "".join([str(part) async for part in answer.body_iterator])  # type: ignore[attr-defined]

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


def test_a_view_that_ends_with_the_console_is_not_over() -> None:
    async def run() -> list[str]:
        feeds = Feeds()
        answer = events(feeds, "a", lambda: View({"a": "1"}, 1), streams=True)
        parts: list[str] = []
        async for part in answer.body_iterator:  # type: ignore[attr-defined]
            parts.append(str(part))
            if "event: view" in parts[-1]:
                await feeds.close()
        return parts

    assert [part.partition("\n")[0] for part in asyncio.run(run())] == ["retry: 5000", "event: view"]
