"""Shows people what happens on their machine, and how long each step takes."""

import threading
import time
from typing import Final, Self, TextIO

BEAT_SECONDS: Final = 1.0


class Steps:
    """Numbers steps, with a dot for each second of a step and its time at its end.

    A step ends when the next one begins. It looks the same on a terminal and in a pipe::

        with Steps(sys.stderr) as step:
            step("starting the emulator")  # 1  starting the emulator .. 2.3 s

    Args:
        out: where they are written, each at once.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._number = 0
        self._over: threading.Event | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.done()

    def __call__(self, what: str) -> None:
        """Begin a step."""
        self.done()
        self._write(f"{self._next()}  {what} ")
        self._began = time.monotonic()
        self._over = threading.Event()
        self._beating = threading.Thread(target=self._beat, args=(self._over,), daemon=True)
        self._beating.start()

    def line(self, what: str) -> None:
        """Name a step that shows by itself how far it is."""
        self.done()
        self._write(f"{self._next()}  {what}\n")

    def done(self) -> None:
        """End the step that runs, if one does."""
        if self._over is not None:
            self._over.set()
            self._beating.join()
            self._over = None
            self._write(f" {time.monotonic() - self._began:.1f} s\n")

    def _next(self) -> str:
        self._number += 1
        return f"{self._number:>2}"

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(BEAT_SECONDS):
            self._write(".")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
