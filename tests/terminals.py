"""The command line in processes of its own: in a terminal, and in a pipe."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, make_server

from fanin.app.api import Fanin
from tests.gateway import Gateway

_CODE: Final = "from fanin.cli import run; run()"
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PATIENCE: Final = 60
"""Seconds that a command may take."""
KEYS: Final = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu-west-1"}


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@contextmanager
def served(services: Fanin) -> Iterator[str]:
    """The API of these services over HTTP; yields its URL."""
    server = make_server("127.0.0.1", 0, Gateway(services, compresses=True), handler_class=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Shown(NamedTuple):
    """What a command left behind.

    Attributes:
        code: its exit code.
        stdout: of a pipe; in a terminal all that it showed.
        stderr: of a pipe; empty in a terminal.
    """

    code: int
    stdout: str
    stderr: str = ""

    @property
    def text(self) -> str:
        """What a terminal shows, without its control sequences."""
        return _ANSI.sub("", self.stdout).replace("\r\n", "\n")

    @property
    def colours(self) -> list[str]:
        """The control sequences for colours and weights."""
        return re.findall(r"\x1b\[[0-9;]*m", self.stdout)


def begin(url: str, *words: object, **variables: str) -> subprocess.Popen[str]:
    """Start a command in a pipe; it is killed if it has not ended after a while."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CODE, "--api-url", url, *map(str, words)],
        env=_environment(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _killed_late(process)
    return process


def piped(url: str, *words: object, **variables: str) -> Shown:
    """Run a command in a pipe."""
    process = begin(url, *words, **variables)
    said, complained = process.communicate(timeout=_PATIENCE)
    return Shown(process.returncode, said, complained)


def in_terminal(
    url: str,
    *words: object,
    columns: int = 100,
    at: str = "",
    then: Callable[[], object] | None = None,
    **variables: str,
) -> Shown:
    """Run a command in a terminal.

    Args:
        url: of the API.
        words: of the command line.
        columns: width of the terminal.
        at: something that the terminal will show.
        then: what to do as soon as it does; by default Ctrl-C is pressed.
        variables: of the environment.
    """
    screen, keyboard = pty.openpty()
    fcntl.ioctl(keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", _CODE, "--api-url", url, *map(str, words)],
        env=_environment({"TERM": "xterm-256color", **variables}),
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
        start_new_session=True,
    ) as process:
        os.close(keyboard)
        _killed_late(process)
        act = then or (lambda: process.send_signal(signal.SIGINT))
        shown = b""
        with suppress(OSError):  # the terminal is gone when its last user is
            while part := os.read(screen, 65_536):
                shown += part
                if at and at.encode() in shown:
                    at = ""
                    act()
        process.wait(_PATIENCE)
    os.close(screen)
    return Shown(process.returncode, shown.decode())


def _killed_late(process: subprocess.Popen[Any]) -> None:
    late = threading.Timer(_PATIENCE, process.kill)
    late.daemon = True
    late.start()


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    return {**plain, **KEYS, **variables}
