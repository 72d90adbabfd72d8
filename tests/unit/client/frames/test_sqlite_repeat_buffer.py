"""What a repeat buffer in a file guarantees besides: it survives its process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from fanin.client.frames.repeat_buffer import BufferUsage
from fanin.client.frames.sqlite_repeat_buffer import SqliteRepeatBuffer
from fanin.errors import BufferFull, NotConfigured, ServiceUnavailable
from tests.unit.client.frames.test_repeat_buffer import fill, payloads


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


def limit_disk(buffer: SqliteRepeatBuffer, pages: int) -> None:
    """Let the file have no more than so many pages than now, as on a disk that is full beyond them."""
    ((now,),) = buffer._database.execute("PRAGMA page_count").fetchall()
    buffer._database.execute(f"PRAGMA max_page_count = {now + pages}")


def test_a_full_disk_loses_nothing_and_all_goes_on_when_there_is_room(tmp_path: Path) -> None:
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


def test_on_a_full_disk_a_frame_that_is_complete_makes_room(tmp_path: Path) -> None:
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


def test_two_senders_never_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("something else, and quite a lot of it " * 99)
    with pytest.raises(NotConfigured, match=r"notes\.txt is not the file of a repeat buffer"):
        SqliteRepeatBuffer(path)
    assert path.read_text().startswith("something else")


def test_what_is_set_aside_and_how_often_an_envelope_was_missing_survive_the_process(tmp_path: Path) -> None:
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
