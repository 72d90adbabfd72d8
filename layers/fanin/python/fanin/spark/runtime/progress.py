"""Lines for people; and how far a job is: one that changes in a terminal, one a minute in a log."""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from threading import Event, Thread
from typing import Final, Self, TextIO

from fanin.wire.typed import duration


def say(line: str, out: TextIO, *, end: str = "\n") -> None:
    """Write a line at once; when its reader has gone, as ``head`` does, it and all later ones go nowhere."""
    try:
        print(line, end=end, file=out, flush=True)
    except BrokenPipeError:
        with contextlib.suppress(OSError):  # of a stream that is no file
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, out.fileno())
            os.close(nowhere)


IN_TERMINAL: Final = 0.5
IN_LOG: Final = 60.0
"""Seconds between two looks."""
_FIRST: Final = 10.0
"""Seconds before which a rate says little."""
_WIDTH: Final = 20


@dataclass(eq=False)
class JobProgress:
    """Shows the progress of one step of a job while the step runs, inside a ``with`` block."""

    what: str
    total: int
    done: Callable[[], int]
    _: KW_ONLY
    out: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._terminal = self.out.isatty()
        self._began = self.clock()
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if kind is None or not self._terminal:
            self._write(self.line())
        if self._terminal:
            say("", self.out)

    def line(self) -> str:
        """How far it is, at what rate, and how long the rest takes at that rate."""
        done, seconds = min(self.done(), self.total), self.clock() - self._began
        share = done / self.total if self.total else 1.0
        said = f"{done:,} of {self.total:,} {self.what}, {share:.0%}"
        if done and seconds >= _FIRST:
            rate = done / seconds
            said += f", {rate:,.0f} a second"
            if done < self.total:
                said += f", {duration((self.total - done) / rate)} left"
        return said

    def _run(self) -> None:
        while not self._over.wait(IN_TERMINAL if self._terminal else IN_LOG):
            self._write(self.line())

    def _write(self, line: str) -> None:
        if self._terminal:
            share = min(self.done() / self.total, 1.0) if self.total else 1.0
            filled = round(share * _WIDTH)
            say(f"\r\x1b[K{'━' * filled}{'╌' * (_WIDTH - filled)} {line}", self.out, end="")
        else:
            say(line, self.out)
