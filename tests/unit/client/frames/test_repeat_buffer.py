"""What every repeat buffer guarantees, in memory or in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.repeat_buffer import NOT_HANDLED, BufferUsage, MemoryRepeatBuffer, RepeatBuffer
from fanin.client.frames.sqlite_repeat_buffer import SqliteRepeatBuffer
from fanin.errors import BufferFull, InvalidRequest

Make = Callable[..., Any]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    if request.param == "memory":
        yield MemoryRepeatBuffer
        return
    made: list[SqliteRepeatBuffer] = []

    def sqlite(**bounds: Any) -> SqliteRepeatBuffer:
        made.append(SqliteRepeatBuffer(tmp_path / "buffer.db", **bounds))
        return made[-1]

    yield sqlite
    for buffer in made:
        buffer.close()


def fill(buffer: RepeatBuffer, count: int) -> None:
    for number in range(count):
        buffer.put(f"payload {number}".encode(), "text/plain")


def payloads(buffer: RepeatBuffer, frame: int, *spans: tuple[int, int]) -> list[bytes]:
    return [envelope.payload for envelope in buffer.read(frame, spans)]


def test_entries_wait_until_a_frame_takes_them_in_order(make: Make) -> None:
    buffer = make()
    fill(buffer, 5)
    buffer.assign(7, 3)

    assert buffer.waiting == 2
    assert buffer.frames() == [7]
    assert list(buffer.read(7, [(0, 1), (2, 3)])) == [
        Envelope(7, 0, b"payload 0", "text/plain"),
        Envelope(7, 2, b"payload 2", "text/plain"),
    ]
    assert payloads(buffer, 7, (1, 99)) == [b"payload 1", b"payload 2"]
    assert payloads(buffer, 8, (0, 9)) == []

    # And a frame is dropped whole
    for _ in range(2):
        buffer.drop(7)
    assert (buffer.frames(), buffer.waiting, buffer.usage) == ([], 2, BufferUsage(2, 18))


def test_of_a_frame_that_was_given_up_what_is_missing_waits_again(make: Make) -> None:
    buffer = make()
    fill(buffer, 5)
    buffer.assign(7, 5)
    buffer.release(7, [(1, 2), (3, 2**32)])  # it need not be known how large the frame was

    assert (buffer.frames(), buffer.waiting, buffer.usage) == ([], 3, BufferUsage(3, 27))
    buffer.assign(8, 3)
    assert payloads(buffer, 8, (0, 3)) == [b"payload 1", b"payload 3", b"payload 4"]


def test_it_is_full_at_its_bound_of_envelopes(make: Make) -> None:
    buffer = make(max_envelopes=3)
    fill(buffer, 3)
    buffer.assign(7, 2)
    said = "holds 3 envelopes of 27 bytes and may hold 3 of .*; wait until"
    with pytest.raises(BufferFull, match=said) as full:
        buffer.put(b"")
    assert full.value.retry_after == 1

    buffer.drop(7)
    fill(buffer, 2)
    assert buffer.usage.envelopes == 3


def test_it_is_full_at_its_bound_of_bytes(make: Make) -> None:
    buffer = make(max_bytes=10)
    buffer.put(b"123456")
    with pytest.raises(BufferFull):
        buffer.put(b"12345")
    buffer.put(b"1234")
    assert buffer.usage == BufferUsage(2, 10)


def test_frames_are_listed_oldest_first(make: Make) -> None:
    buffer = make()
    fill(buffer, 3)
    for frame in (9, 3, 5):
        buffer.assign(frame, 1)
    assert buffer.frames() == [9, 3, 5]


def test_what_can_never_be_sent_is_set_aside_with_the_reason(make: Make) -> None:
    # Given a frame of three, of which two can never be sent
    buffer = make()
    fill(buffer, 3)
    buffer.assign(7, 3)
    buffer.set_aside(7, {0: "too long", 2: "odd", 9: "not there"})

    # Then they are no longer sent, and still held
    assert payloads(buffer, 7, (0, 3)) == [b"payload 1"]
    aside = buffer.aside()
    assert [(one.payload, one.content_type, one.reason) for one in aside] == [
        (b"payload 0", "text/plain", "too long"),
        (b"payload 2", "text/plain", "odd"),
    ]
    assert (buffer.usage, buffer.waiting) == (BufferUsage(3, 27), 0)

    # And the end of their frame does not touch them
    buffer.drop(7)
    assert (buffer.aside(), buffer.usage) == (aside, BufferUsage(2, 18))


def test_it_says_how_many_envelopes_were_missing_from_too_many_frames(make: Make) -> None:
    # Given a frame with an envelope that can never be sent, and two that receivers have not handled
    buffer = make()
    fill(buffer, 4)
    buffer.assign(7, 4)
    buffer.set_aside(7, {0: "too long"})
    missing = [(1, 3)]

    # When it is given up, then they wait again, since they may be missing from two frames
    assert buffer.release(7, missing, others_delivered=True, max_frames=2) == 0
    assert buffer.waiting == 2

    # And when they are missing from a second one, then they are set aside, and only they are counted
    buffer.assign(8, 2)
    assert buffer.release(8, [(0, 2)], max_frames=2) == 2
    assert [one.payload for one in buffer.aside()] == [b"payload 0", b"payload 1", b"payload 2"]
    assert (buffer.waiting, buffer.usage) == (0, BufferUsage(3, 27))
    assert {one.reason for one in buffer.aside()} == {"too long", NOT_HANDLED.format(frames=2)}


def test_what_was_set_aside_is_put_back_or_discarded(make: Make) -> None:
    buffer = make()
    fill(buffer, 2)
    buffer.assign(7, 2)
    buffer.set_aside(7, {0: "why", 1: "why"})
    assert buffer.frames() == []

    first, second = (one.number for one in buffer.aside())
    for _ in range(2):
        buffer.put_back(first)
        buffer.discard(second)
    assert (buffer.aside(), buffer.waiting, buffer.usage) == ([], 1, BufferUsage(1, 9))
    buffer.assign(8, 1)
    assert payloads(buffer, 8, (0, 1)) == [b"payload 0"]


@pytest.mark.parametrize("bounds", [{"max_envelopes": 0}, {"max_bytes": 0}])
def test_bounds_that_hold_nothing_are_refused(make: Make, bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="must be a whole number from 1"):
        make(**bounds)


def test_a_content_type_that_cannot_be_stored_is_refused_and_nothing_is_kept(make: Make) -> None:
    buffer = make()
    with pytest.raises(InvalidRequest, match="a content type has one half of a surrogate pair"):
        buffer.put(b"a", "\ud800")
    assert (buffer.usage, buffer.waiting) == (BufferUsage(0, 0), 0)


def test_threads_that_put_keep_to_the_bounds_and_lose_nothing() -> None:
    # Given a buffer for 500 payloads, and eight threads that put 100 each
    buffer = MemoryRepeatBuffer(max_envelopes=500)

    def put(thread: int) -> int:
        kept = 0
        for number in range(100):
            try:
                buffer.put(f"{thread}/{number:02}".encode())
            except BufferFull:
                continue
            kept += 1
        return kept

    # When they all put at the same time
    with ThreadPoolExecutor(8) as pool:
        kept = sum(pool.map(put, range(8)))

    # Then exactly so many were accepted, each once
    assert kept == buffer.waiting == 500
    assert buffer.usage == BufferUsage(500, 500 * 4)
    buffer.assign(7, 500)
    assert len({envelope.payload for envelope in buffer.read(7, [(0, 500)])}) == 500


def test_a_frame_may_be_dropped_while_it_is_read() -> None:
    buffer = MemoryRepeatBuffer()
    for payload in (b"a", b"b"):
        buffer.put(payload)
    buffer.assign(7, 2)
    reading = buffer.read(7, [(0, 2)])
    first = next(reading)
    buffer.drop(7)
    assert [first.payload, *(envelope.payload for envelope in reading)] == [b"a", b"b"]
