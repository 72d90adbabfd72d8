"""What a repeat buffer guarantees; the one in memory is the same without a file."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fanin.client.frames.envelopes import Envelope
from fanin.client.frames.repeat_buffer import NOT_HANDLED, BufferUsage, MemoryRepeatBuffer, SqliteRepeatBuffer
from fanin.errors import BufferFull, InvalidRequest, NotConfigured, ServiceUnavailable

Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[SqliteRepeatBuffer] = []

    def in_a_file(**bounds: Any) -> SqliteRepeatBuffer:
        made.append(SqliteRepeatBuffer(tmp_path / "buffer.db", **bounds))
        return made[-1]

    yield in_a_file
    for buffer in made:
        buffer.close()


def fill(buffer: SqliteRepeatBuffer, count: int) -> None:
    for number in range(count):
        buffer.put(f"payload {number}".encode(), "text/plain")


def payloads(buffer: SqliteRepeatBuffer, frame: int, *spans: tuple[int, int]) -> list[bytes]:
    return [envelope.payload for envelope in buffer.read(frame, spans)]


def test_entries_wait_until_a_frame_takes_them_in_order(make):
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


def test_of_a_frame_that_was_given_up_what_is_missing_waits_again(make):
    buffer = make()
    fill(buffer, 5)
    buffer.assign(7, 5)
    buffer.release(7, [(1, 2), (3, 2**32)])  # it need not be known how large the frame was

    assert (buffer.frames(), buffer.waiting, buffer.usage) == ([], 3, BufferUsage(3, 27))
    buffer.assign(8, 3)
    assert payloads(buffer, 8, (0, 3)) == [b"payload 1", b"payload 3", b"payload 4"]


def test_it_is_full_at_its_bound_of_envelopes(make):
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


def test_it_is_full_at_its_bound_of_bytes(make):
    buffer = make(max_bytes=10)
    buffer.put(b"123456")
    with pytest.raises(BufferFull):
        buffer.put(b"12345")
    buffer.put(b"1234")
    assert buffer.usage == BufferUsage(2, 10)


def test_frames_are_listed_oldest_first(make):
    buffer = make()
    fill(buffer, 3)
    for frame in (9, 3, 5):
        buffer.assign(frame, 1)
    assert buffer.frames() == [9, 3, 5]


def test_what_can_never_be_sent_is_set_aside_with_the_reason(make):
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


def test_it_says_how_many_envelopes_were_missing_from_too_many_frames(make):
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


def test_what_was_set_aside_is_put_back_or_discarded(make):
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
def test_bounds_that_hold_nothing_are_refused(make, bounds):
    with pytest.raises(InvalidRequest, match="must be a whole number from 1"):
        make(**bounds)


def test_a_content_type_that_cannot_be_stored_is_refused_and_nothing_is_kept(make):
    buffer = make()
    with pytest.raises(InvalidRequest, match="a content type has one half of a surrogate pair"):
        buffer.put(b"a", "\ud800")
    assert (buffer.usage, buffer.waiting) == (BufferUsage(0, 0), 0)


def test_threads_that_put_keep_to_the_bounds_and_lose_nothing():
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


def test_a_frame_may_be_dropped_while_it_is_read():
    buffer = MemoryRepeatBuffer()
    for payload in (b"a", b"b"):
        buffer.put(payload)
    buffer.assign(7, 2)
    reading = buffer.read(7, [(0, 2)])
    first = next(reading)
    buffer.drop(7)
    assert [first.payload, *(envelope.payload for envelope in reading)] == [b"a", b"b"]


def test_what_was_put_survives_the_process(tmp_path):
    # Given a process that puts, says so, and is killed without warning
    path = tmp_path / "buffer.db"
    script = f"""
import pathlib
from fanin.client.frames.repeat_buffer import SqliteRepeatBuffer
buffer = SqliteRepeatBuffer(pathlib.Path({str(path)!r}))
number = 0
while True:
    buffer.put(str(number).encode())
    print(number, flush=True)
    number += 1
    if number == 50:
        buffer.assign(7, 20)
"""
    sender = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
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


def limit_disk(buffer: SqliteRepeatBuffer, pages: int) -> None:
    """Let the file have no more than so many pages than now, as on a disk that is full beyond them."""
    ((now,),) = buffer._database.execute("PRAGMA page_count").fetchall()
    buffer._database.execute(f"PRAGMA max_page_count = {now + pages}")


def test_a_full_disk_loses_nothing_and_all_goes_on_when_there_is_room(tmp_path):
    # Given a disk that becomes full
    buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
    limit_disk(buffer, 12)
    number = 0
    with suppress(BufferFull):
        while True:
            buffer.put(f"payload {number}".encode())
            number += 1
    with pytest.raises(BufferFull, match=r"no room on the disk for .*buffer\.db") as full:
        buffer.put(b"x" * 100)
    assert (full.value.retryable, full.value.retry_after) == (True, 1)
    # Then what was put is there, and no frame is filled by halves
    assert buffer.usage.envelopes == buffer.waiting == number
    with pytest.raises(BufferFull):
        buffer.assign(7, number)
    assert (buffer.frames(), buffer.waiting) == ([], number)
    # When there is room, Then all goes on
    limit_disk(buffer, 100_000)
    buffer.assign(7, number)
    assert payloads(buffer, 7, (0, number)) == [f"payload {n}".encode() for n in range(number)]
    buffer.put(b"again")
    buffer.close()


def test_on_a_full_disk_a_frame_that_is_complete_makes_room(tmp_path):
    buffer = SqliteRepeatBuffer(tmp_path / "buffer.db")
    fill(buffer, 300)
    buffer.assign(7, 300)
    limit_disk(buffer, 0)
    with pytest.raises(BufferFull):
        buffer.put(b"x" * 8_000)
    buffer.drop(7)
    buffer.put(b"x" * 8_000)
    assert buffer.usage == BufferUsage(1, 8_000)
    buffer.close()


def test_two_senders_never_share_a_file(tmp_path, monkeypatch):
    """Both would send the same envelopes, each in frames of its own."""
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0))  # nobody will close it
    first = SqliteRepeatBuffer(tmp_path / "buffer.db", power_safe=True)
    fill(first, 1)
    with pytest.raises(ServiceUnavailable, match=r"buffer\.db cannot be used now: .*no other process"):
        SqliteRepeatBuffer(tmp_path / "buffer.db")
    # But when the first one is closed, the next one goes on
    first.close()
    second = SqliteRepeatBuffer(tmp_path / "buffer.db")
    second.assign(7, 1)
    assert payloads(second, 7, (0, 9)) == [b"payload 0"]
    second.close()


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("something else, and quite a lot of it " * 99)
    with pytest.raises(NotConfigured, match=r"notes\.txt is not the file of a repeat buffer"):
        SqliteRepeatBuffer(path)
    assert path.read_text().startswith("something else")


def test_what_is_set_aside_and_how_often_an_envelope_was_missing_survive_the_process(tmp_path):
    # Given an envelope that is set aside for a reason that SQLite cannot store as it is, and one that is not
    path = tmp_path / "buffer.db"
    buffer = SqliteRepeatBuffer(path)
    buffer.put(b"a")
    buffer.put(b"b")
    buffer.assign(7, 2)
    buffer.set_aside(7, {1: "cannot write '\ud800'"})
    buffer.close()
    # Then that survives the process, with what can be read of the reason
    buffer = SqliteRepeatBuffer(path)
    assert [(one.payload, one.reason) for one in buffer.aside()] == [(b"b", "cannot write '?'")]
    assert buffer.usage == BufferUsage(2, 2)
    # And so does how often the other was missing
    assert buffer.release(7, [(0, 1)], others_delivered=True, max_frames=2) == 0
    buffer.close()
    buffer = SqliteRepeatBuffer(path)
    buffer.assign(8, 1)
    assert buffer.release(8, [(0, 1)], max_frames=2) == 1
    assert [one.payload for one in buffer.aside()] == [b"a", b"b"]
    buffer.close()
