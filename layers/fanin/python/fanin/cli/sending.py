"""How ``fanin fanout`` sends: rate and time left, Ctrl-C, and the command line with which to go on."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import typer

from fanin.cli.exits import ExitCode
from fanin.cli.session import Session
from fanin.cli.times import Pace, clock

if TYPE_CHECKING:
    from fanin.client.producing.resuming import Stop

_LINE_SECONDS: Final = 5.0
"""Seconds between two lines of progress where stderr is not a terminal."""
_ASKED: Final = b"\nstopping as soon as the requests under way are answered; Ctrl-C again stops at once\n"


@contextmanager
def asking(stop: Stop) -> Iterator[None]:
    """Let the first Ctrl-C ask for a stop; the second one interrupts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: Any) -> None:
        if stop.asked:
            signal.default_int_handler(number, frame)
        stop.asked = True
        os.write(2, _ASKED)  # print could be interrupted by itself

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class SendMeter:
    """Counts what is read and sent, and estimates the time left from the part of the file that is read.

    Args:
        file: the open file, before it is unpacked.
        whole: whether its position says how far the reading is.
    """

    def __init__(self, file: BinaryIO, *, whole: bool) -> None:
        self.sent = 0
        self._read = 0
        self._file = file
        self._pace = Pace()
        self._started = time.monotonic()
        self._pace.record(self._started, 0)
        self._size = 0
        if whole:
            with suppress(OSError):  # a pipe has neither position nor size
                file.tell()
                self._size = os.fstat(file.fileno()).st_size

    def counted(self, rows: Iterator[str]) -> Iterator[str]:
        """The same rows, counted."""
        for row in rows:
            self._read += 1
            yield row

    def describe(self) -> str:
        """What is sent, at which rate, and how long the rest takes, about."""
        parts = [f"{self.sent:,} sent"]
        if self._pace.rate is not None:
            parts.append(f"{self._pace.rate:,.0f}/s")
        if (left := self._seconds_left()) is not None:
            parts.append(f"about {clock(left)} left")
        parts.append(f"{clock(time.monotonic() - self._started)} elapsed")
        return ", ".join(parts)

    def _seconds_left(self) -> float | None:
        if not self._size or not self._read:
            return None
        position = self._size if self._file.closed else self._file.tell()  # it is closed after its last row
        if not position:
            return None
        rows = self._read * max(1.0, self._size / position)
        return self._pace.seconds_left(max(0, int(rows) - self.sent))

    @contextmanager
    def drawn(self, run: Session) -> Iterator[Callable[[int], None]]:
        """Show it, in a terminal beside a spinner, else in a line every five seconds."""
        if run.draws:
            with run.stderr.status(self.describe()) as shown:
                yield lambda taken: shown.update(self._took(taken))
            return
        last = self._started

        def line(taken: int) -> None:
            nonlocal last
            said, now = self._took(taken), time.monotonic()
            if now - last >= _LINE_SECONDS and not run.as_json:
                last = now
                run.remark(said)

        yield line

    def _took(self, taken: int) -> str:
        self.sent += taken
        self._pace.record(time.monotonic(), self.sent)
        return self.describe()


def again(words: Sequence[str], **options: object) -> str:
    """The command line of this run with some options set to other values, for a shell.

    Args:
        words: the words of this run, after ``fanin``.
        options: the options by name, without dashes; those that are None stay as they are.
    """
    options = {name: value for name, value in options.items() if value is not None}
    kept: list[str] = []
    end = words.index("--") if "--" in words else len(words)  # what follows are no options
    stream = iter(words[:end])
    for word in stream:
        name, equals, _ = word.partition("=")
        if name.startswith("--") and name[2:] in options:
            if not equals:
                next(stream, None)
        else:
            kept.append(word)
    added = (part for name, value in options.items() for part in (f"--{name}", str(value)))
    return shlex.join(["fanin", *kept, *added, *words[end:]])


@contextmanager
def all_sent(run: Session) -> Iterator[list[int]]:
    """Say what to do if nothing but the close is missing, and that fails.

    Yields:
        A list that takes the id of the batch, once all of its messages are sent.
    """
    sent: list[int] = []
    try:
        yield sent
    except BaseException:
        for batch_id in sent:
            close = run.command("close", str(batch_id))
            run.remark(
                f"all rows were sent; do not send them again. What is left is to close the batch: {close}"
            )
        raise


def stopped(run: Session, batch_id: int, sent: int, how: str, **options: object) -> typer.Exit:
    """Say what was sent, and how to go on: the same command with some options set anew; returns the exit."""
    run.remark(f"stopped after {sent:,} messages of this run; batch {batch_id} is open. {how}:")
    run.remark(f"  {again(run.words, **options)}")
    run.remark(f"To give it up instead: {run.command('cancel', str(batch_id))}")
    sys.stderr.flush()
    return typer.Exit(ExitCode.INTERRUPTED)
