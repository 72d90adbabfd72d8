"""What a repeat buffer in a file guarantees besides: it survives its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from fanin.client.frames.repeat_buffer import Usage
from fanin.client.frames.sqlite_repeat_buffer import SqliteRepeatBuffer
from tests.unit.client.frames.test_repeat_buffer import fill, payloads


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
