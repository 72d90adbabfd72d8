"""Live views: one reader for all viewers, and the events that they get."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from anyio import CancelScope
from starlette.datastructures import Headers

from fanin.console import feeds as module
from fanin.console.feeds import (
    AGAIN_AFTER_FAULT,
    FAULT,
    FEEDS,
    LATEST,
    SOONEST,
    FeedError,
    Feeds,
    Read,
    TooManyViews,
    Update,
    View,
    events,
)
from fanin.errors import Throttled


class Clock:
    """A clock whose seconds pass at once. It notes how long each pause was."""

    def __init__(self, stop_at: float = float("inf")) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.stopped = asyncio.Event()
        self._stop_at = stop_at

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)
        if self.now >= self._stop_at:
            self.stopped.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)


class Reads:
    """A view that shows the numbers given, one after another, and then the last for ever."""

    def __init__(self, *shown: int | Exception, over_at: int | None = None) -> None:
        self._shown = shown
        self._over_at = over_at
        self.count = 0

    def __call__(self) -> View:
        one = self._shown[min(self.count, len(self._shown) - 1)]
        self.count += 1
        if isinstance(one, Exception):
            raise one
        return View({"at": str(one)}, one, over=one == self._over_at)


async def take(told: AsyncIterator[Update], number: int) -> list[Update]:
    found: list[Update] = []
    async for update in told:
        found.append(update)
        if len(found) == number:
            break
    return found


def texts(updates: list[Update]) -> list[str]:
    return [update.fragments["at"] if isinstance(update, View) else "?" for update in updates]


def test_a_viewer_gets_what_changes_until_it_is_over() -> None:
    async def run() -> None:
        feeds = Feeds(Clock().sleep)
        told = [update async for update in feeds.follow("a", Reads(1, 1, 2, 3, over_at=3))]
        assert texts(told)[-1] == "3"
        assert texts(told) == sorted(set(texts(told)))
        assert len(feeds) == 0

    asyncio.run(run())


def test_a_view_that_is_over_is_not_read_any_more() -> None:
    async def run() -> None:
        # Given a viewer that has not taken note of the end yet
        feeds, reads = Feeds(lambda _: asyncio.sleep(0)), Reads(1, over_at=1)
        async with aclosing(feeds.follow("a", reads)) as told:
            await anext(told)
            # When time passes, then nobody reads
            await asyncio.sleep(0.05)
            assert reads.count == 1

    asyncio.run(run())


def test_all_viewers_of_a_view_share_one_reader() -> None:
    async def run() -> None:
        # Given a view that never changes
        clock, reads = Clock(stop_at=100), Reads(1)
        feeds = Feeds(clock.sleep)
        viewers = [feeds.follow("a", reads) for _ in range(50)]
        first = await asyncio.gather(*(anext(viewer) for viewer in viewers))
        # Then it was read as often as for one
        assert texts(list(first)) == ["1"] * 50
        assert len(feeds) == 1
        assert reads.count <= 1 + len(clock.pauses)
        # And when all have left, nobody reads
        for viewer in viewers:
            await viewer.aclose()
        before = reads.count
        await asyncio.sleep(0.02)
        assert (len(feeds), reads.count) == (0, before)

    asyncio.run(run())


def test_a_day_of_watching_neither_reads_more_nor_keeps_more(monkeypatch) -> None:
    async def run() -> None:
        # Given a view that changes for a minute, and then stands still
        day = 86_400
        clock = Clock(stop_at=day)
        reads = Reads(*range(60))
        feeds = Feeds(clock.sleep)
        async with aclosing(feeds.follow("a", reads)) as told:
            # When a page shows it for a day
            await anext(told)
            await clock.stopped.wait()
        # Then it is read once in half a minute, and the reader keeps only the last view
        assert clock.pauses[0] == SOONEST
        assert clock.pauses[-1] == LATEST
        assert reads.count < 60 + 20 + day / LATEST
        assert len(feeds) == 0

    asyncio.run(run())


def test_a_change_makes_the_reader_fast_again() -> None:
    async def run() -> None:
        clock = Clock(stop_at=300)
        feeds = Feeds(clock.sleep)
        async with aclosing(feeds.follow("a", Reads(*[1] * 8, 2, 2))) as told:
            await take(told, 2)
        slow = max(range(8), key=lambda at: clock.pauses[at])
        assert clock.pauses[slow] > SOONEST
        assert SOONEST in clock.pauses[slow + 1 :]

    asyncio.run(run())


def test_trouble_is_told_and_tried_again_ever_later() -> None:
    async def run() -> None:
        # Given a service that is overloaded, and says how long to wait
        busy = [Throttled("busy", retry_after=after) for after in (None, 7, None)]
        clock = Clock(stop_at=500)
        feeds = Feeds(clock.sleep)
        seen: list[Update] = []
        async for update in feeds.follow("a", Reads(*busy, 5, over_at=5)):
            seen.append(update)  # noqa: PERF401 - to have them all as they come
        # Then the last thing told is the view, and pauses grew before it
        assert texts(seen)[-1] == "5"
        assert any(isinstance(update, FeedError) and update.text == "busy" for update in seen)
        assert clock.pauses[:3] == [2, 7, 8]

    asyncio.run(run())


def test_a_fault_of_the_console_is_told_at_once_and_ends_the_view() -> None:
    async def run() -> None:
        feeds = Feeds(Clock().sleep)
        told = feeds.follow("a", Reads(ZeroDivisionError()))
        assert await asyncio.wait_for(anext(told), 60) == FeedError(FAULT, AGAIN_AFTER_FAULT)
        with pytest.raises(ZeroDivisionError):
            await anext(told)
        assert len(feeds) == 0

    asyncio.run(run())


def test_after_a_fault_the_next_viewer_has_another_reader_while_others_have_not_left() -> None:
    async def run() -> None:
        # Given a reader that has failed once, and a viewer that has not noticed it yet
        feeds = Feeds(Clock(stop_at=10).sleep)
        reads = Reads(ZeroDivisionError(), 7)
        slow = feeds.follow("a", reads)
        assert await anext(slow) == FeedError(FAULT, AGAIN_AFTER_FAULT)
        other = feeds.follow("a", reads)
        # Then it gets the view, and keeps it when the first has left
        assert texts([await anext(other)]) == ["7"]
        with pytest.raises(ZeroDivisionError):
            await anext(slow)
        assert len(feeds) == 1
        await other.aclose()

    asyncio.run(run())


def test_who_is_cut_off_at_an_update_leaves_the_others_theirs() -> None:
    async def run() -> None:
        # Given a view that changes all the time, somebody who stays, and others
        feeds = Feeds(lambda _: asyncio.sleep(0.005))
        reads = Reads(*range(100_000))
        scopes = [CancelScope() for _ in range(20)]

        async def leave(scope: CancelScope) -> None:
            with scope:  # as a server cancels an answer: again and again, until it has ended
                async for _ in feeds.follow("a", reads):
                    pass

        async with aclosing(feeds.follow("a", reads)) as stays:
            await anext(stays)
            leaving = [asyncio.create_task(leave(scope)) for scope in scopes]
            for scope in scopes:
                # When one of them is cut off as an update comes
                await asyncio.wait_for(anext(stays), 60)
                scope.cancel()
            # Then who stays still gets what is new
            assert texts([await asyncio.wait_for(anext(stays), 60)]) > ["0"]
            await asyncio.gather(*leaving)

    asyncio.run(run())


def test_a_quiet_view_gives_signs_of_life(monkeypatch) -> None:
    async def run() -> None:
        monkeypatch.setattr(module, "HEARTBEAT", 0.01)
        feeds = Feeds(Clock(stop_at=10).sleep)
        async with aclosing(feeds.follow("a", Reads(1))) as told:
            updates = await take(told, 6)
        assert len([update for update in updates if isinstance(update, View)]) <= 1
        assert None in updates

    asyncio.run(run())


def test_only_so_many_views_are_read_at_a_time() -> None:
    async def run() -> None:
        feeds = Feeds(Clock(stop_at=1).sleep)
        open_views = [feeds.follow(number, Reads(number)) for number in range(FEEDS)]
        for view in open_views:
            await anext(view)
        with pytest.raises(TooManyViews):
            await anext(feeds.follow("one more", Reads(1)))
        await open_views[0].aclose()
        assert await anext(feeds.follow("one more", Reads(1)))
        for view in open_views:
            await view.aclose()

    asyncio.run(run())


def test_closing_lets_viewers_go_and_reads_no_more() -> None:
    async def run() -> None:
        # Given two viewers of a view that is not over
        clock, reads = Clock(stop_at=1), Reads(1)
        feeds = Feeds(clock.sleep)
        viewers = [feeds.follow("a", reads) for _ in range(2)]
        for viewer in viewers:
            assert texts([await anext(viewer)]) == ["1"]
        feeds.close()
        # Then both viewers have reached the end, and nobody gets anything any more
        assert [[update async for update in viewer] for viewer in viewers] == [[], []]
        assert [update async for update in feeds.follow("a", reads)] == []
        assert (len(feeds), reads.count) == (0, 1)

    asyncio.run(run())


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
    monkeypatch.setattr(module, "FEEDS", 0)
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
