"""The console as ``fanin ui`` serves it, asked over a real connection."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3

from fanin.console import serve as module
from fanin.console.serve import serve
from fanin.errors import NotConfigured

SERVES = """
import sys
from fanin import Tracker
from fanin.console.serve import serve
serve(Tracker.in_memory().services, name="a test", browser=False, report=lambda line: print(line, flush=True))
"""


@contextmanager
def served() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves a console, and its launch link."""
    paths = os.pathsep.join(sys.path)
    process = subprocess.Popen(  # noqa: S603 - what it runs is above
        [sys.executable, "-c", SERVES],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().partition(": ")[2].strip()
    finally:
        process.kill()
        process.wait()


def test_a_launch_link_opens_the_console_once_and_ctrl_c_ends_it() -> None:
    with served() as (process, link):
        # Given the link that was printed
        assert urlsplit(link).hostname == "127.0.0.1"
        http = urllib3.PoolManager()
        # When it is opened, and opened again by another browser
        first = http.request("GET", link, redirect=False)
        second = http.request("GET", link, redirect=False)
        cookie = first.headers["set-cookie"].partition(";")[0]
        page = http.request("GET", link.partition("?")[0], headers={"cookie": cookie})
        # Then only the first gets in
        assert (first.status, second.status, page.status) == (303, 403, 200)
        assert b"a test" in page.data
        assert "server" not in page.headers
        # And Ctrl-C ends it, also while somebody follows a live view
        live = http.request(
            "GET", link.partition("?")[0] + "live/overview", headers={"cookie": cookie}, preload_content=False
        )
        assert live.read(20).startswith(b"retry")
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        # Without a word: it has ended the answer that was open
        assert process.stderr is not None
        assert "ERROR" not in process.stderr.read()


def test_the_first_free_port_is_taken(monkeypatch) -> None:
    # Given that somebody listens on the first port that is tried
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(module, "PORT", taken.getsockname()[1])
        # When a console chooses its port
        with module._listening("127.0.0.1", None) as listener:
            # Then it is another one
            assert listener.getsockname()[1] != taken.getsockname()[1]


def test_a_port_that_is_taken_is_said(service) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(NotConfigured, match=f"port {port}.*--port"):
            serve(service.services, name="x", port=port, browser=False, report=print)


@pytest.mark.parametrize(
    ("host", "name", "answered"),
    [
        ("127.0.0.1", "localhost:1", True),
        ("127.0.0.1", "[::1]:1", True),
        ("127.0.0.1", f"{socket.gethostname().lower()}:1", False),
        ("0.0.0.0", f"{socket.gethostname().lower()}:1", True),  # noqa: S104
        ("::1", "[::1]:1", True),
        ("127.0.0.1", "evil.example:1", False),
    ],
)
def test_only_names_of_this_machine_are_answered(host, name, answered) -> None:
    assert (name in set(module._names(host, 1))) is answered


def test_enter_prints_another_link(monkeypatch, tmp_path: Path) -> None:
    # Given a terminal in which somebody presses Enter twice
    reader, writer = os.openpty()
    pressed = threading.Semaphore(0)
    monkeypatch.setattr(sys, "stdin", os.fdopen(writer, "r"))
    module._on_enter(pressed.release)
    os.write(reader, b"\n\n")
    # Then that is noticed twice
    assert pressed.acquire(timeout=5)
    assert pressed.acquire(timeout=5)


def test_without_a_terminal_nobody_waits_for_enter(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    module._on_enter(lambda: pytest.fail("nobody pressed Enter"))
