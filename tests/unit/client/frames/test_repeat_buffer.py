"""What every repeat buffer promises; and what the one in a file promises besides."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.memory_repeat_buffer import MemoryRepeatBuffer
from fanin.client.frames.repeat_buffer import RepeatBuffer, Usage
from fanin.client.frames.sqlite_repeat_buffer import SqliteRepeatBuffer
from fanin.errors import BufferFull

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


def test_a_frame_is_dropped_whole(make: Make) -> None:
    buffer = make()
    fill(buffer, 5)
    buffer.assign(7, 3)
    buffer.drop(7)
    buffer.drop(7)

    assert (buffer.frames(), buffer.waiting, buffer.usage) == ([], 2, Usage(2, 18))


def test_of_a_frame_that_was_given_up_what_is_missing_waits_again(make: Make) -> None:
    buffer = make()
    fill(buffer, 5)
    buffer.assign(7, 5)
    buffer.release(7, [(1, 2), (3, 5)])

    assert (buffer.frames(), buffer.waiting, buffer.usage) == ([], 3, Usage(3, 27))
    buffer.assign(8, 3)
    assert payloads(buffer, 8, (0, 3)) == [b"payload 1", b"payload 3", b"payload 4"]


def test_all_of_a_frame_waits_again_if_it_is_not_known_how_large_it_was(make: Make) -> None:
    buffer = make()
    fill(buffer, 3)
    buffer.assign(7, 3)
    buffer.release(7, [(0, 2**32)])

    assert (buffer.frames(), buffer.waiting, buffer.usage) == ([], 3, Usage(3, 27))


def test_it_is_full_at_its_bound_of_envelopes(make: Make) -> None:
    buffer = make(max_envelopes=3)
    fill(buffer, 3)
    buffer.assign(7, 2)
    with pytest.raises(BufferFull) as full:
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
    assert buffer.usage == Usage(2, 10)


def test_frames_are_listed_oldest_first(make: Make) -> None:
    buffer = make()
    fill(buffer, 3)
    for frame in (9, 3, 5):
        buffer.assign(frame, 1)
    assert buffer.frames() == [9, 3, 5]


def test_a_file_that_is_opened_again_goes_on(tmp_path: Path) -> None:
    # Given a buffer that was closed with a frame under way
    before = SqliteRepeatBuffer(tmp_path / "buffer.db", power_safe=True)
    fill(before, 4)
    before.assign(7, 2)
    before.close()

    # When it is opened again, Then all is there
    after = SqliteRepeatBuffer(tmp_path / "buffer.db")
    assert (after.frames(), after.waiting, after.usage) == ([7], 2, Usage(4, 36))
    assert payloads(after, 7, (0, 2)) == [b"payload 0", b"payload 1"]
    after.close()


def test_what_was_put_survives_the_process(tmp_path: Path) -> None:
    # Given a process that puts, says so, and is killed without warning
    path = tmp_path / "buffer.db"
    script = f"""
import pathlib
from fanin.client.frames.sqlite_repeat_buffer import SqliteRepeatBuffer
buffer = SqliteRepeatBuffer(pathlib.Path({str(path)!r}))
number = 0
while True:
    buffer.put(str(number).encode())
    print(number, flush=True)
    number += 1
    if number == 50:
        buffer.assign(7, 20)
"""
    sender = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert sender.stdout is not None
    told = -1
    while told < 200:
        told = int(sender.stdout.readline())
    os.kill(sender.pid, signal.SIGKILL)
    told = int([told, *sender.stdout.read().split()][-1])
    sender.wait()

    # When another one opens the file, Then everything that was said is there, in its frame or waiting
    buffer = SqliteRepeatBuffer(path)
    assert payloads(buffer, 7, (0, 20)) == [str(number).encode() for number in range(20)]
    assert buffer.usage.envelopes in (told + 1, told + 2)
    assert buffer.waiting == buffer.usage.envelopes - 20
    buffer.close()
