"""The console as ``fanin ui`` serves it, asked over a real connection."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
import urllib3

from fanin.console import Options
from fanin.console import serve as module
from fanin.console.serve import serve
from fanin.errors import NotConfigured

SERVES = """
from contextlib import suppress
from fanin import Tracker
from fanin.console.serve import serve
with suppress(KeyboardInterrupt):  # which is the caller's, as in the command line
    said = lambda line: print(line, flush=True)
    serve(Tracker.in_memory().services, name="a test", browser=False, report=said)
"""


@contextmanager
def served() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves a console, and its launch link."""
    paths = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVES],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    late = threading.Timer(60, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().partition(": ")[2].strip()
    finally:
        late.cancel()
        process.kill()
        process.wait()


def test_a_launch_link_opens_the_console_once_and_ctrl_c_ends_it():
    with served() as (process, link):
        # Given the link that was printed
        assert urlsplit(link).hostname == "127.0.0.1"
        http = urllib3.PoolManager()
        # When it is opened, and opened again by another browser
        first = http.request("GET", link, redirect=False)
        second = http.request("GET", link, redirect=False)
        cookie = first.headers["set-cookie"].partition(";")[0]
        page = http.request("GET", link.partition("?")[0], headers={"cookie": cookie})
        assert (first.status, second.status, page.status) == (303, 403, 200)
        assert b"a test" in page.data
        assert "server" not in page.headers
        # And Ctrl-C ends it without a word
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        assert process.stderr is not None
        assert "ERROR" not in process.stderr.read()


def test_an_impatient_ctrl_c_is_no_error():
    with served() as (process, _):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert said == ""


def test_the_first_free_port_is_taken(monkeypatch):
    # Given that somebody listens on the first port that is tried
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(module, "PORT", taken.getsockname()[1])
        with module._listening("127.0.0.1", None) as listener:
            assert listener.getsockname()[1] != taken.getsockname()[1]


def test_a_port_that_is_taken_is_said(service):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(NotConfigured, match=f"port {port}.*--port"):
            serve(service.services, name="x", port=port, browser=False, report=print)


def test_an_address_that_is_wrong_is_not_blamed_on_the_port(service):
    with pytest.raises(NotConfigured, match="--host"):
        serve(service.services, name="x", host="203.0.113.1", browser=False, report=print)


def test_who_runs_it_is_who_presses_its_buttons(service, monkeypatch):
    # Given what is made of the options
    made: list[str] = []

    def console(_: object, options: Options) -> None:
        made.append(options.caller)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "console", console)
    monkeypatch.setattr(module.getpass, "getuser", lambda: "ada")
    with pytest.raises(KeyboardInterrupt):
        serve(service.services, name="x", browser=False, report=print)
    # Then the user of this machine stands in it
    assert made == ["ada"]


def test_a_user_without_a_name_may_run_it(monkeypatch):
    monkeypatch.setattr(module.getpass, "getuser", lambda: {}["no name"])
    assert module._user() == ""


@pytest.mark.parametrize(
    ("host", "name", "answered"),
    [
        ("127.0.0.1", "localhost:1", True),
        ("127.0.0.1", f"{socket.gethostname().lower()}:1", False),
        ("0.0.0.0", f"{socket.gethostname().lower()}:1", True),
        ("::1", "[::1]:1", True),
        ("LocalHost", "localhost:1", True),
        ("Machine.Example", "machine.example:1", True),
        ("127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "evil.example:1", False),
    ],
)
def test_only_names_of_this_machine_are_answered(host, name, answered):
    assert (name in set(module._names(host, 1))) is answered


def test_browsers_leave_out_the_port_of_http():
    assert {"127.0.0.1", "127.0.0.1:80", "[::1]"} <= set(module._names("127.0.0.1", 80))


@pytest.mark.parametrize(
    ("host", "address", "open_to_others"),
    [("127.0.0.1", "127.0.0.1", False), ("::1", "[::1]", False), ("0.0.0.0", "0.0.0.0", True)],
)
def test_the_link_leads_to_the_address_and_says_who_can_reach_it(
    service, monkeypatch, host, address, open_to_others
):
    # Given a server that stops as soon as it answers
    class Stopped(module._Server):
        def run(self, sockets: list[socket.socket] | None = None) -> None:
            self._when_started()

    monkeypatch.setattr(module, "_Server", Stopped)
    said: list[str] = []
    serve(service.services, name="x", host=host, browser=False, report=said.append)
    # Then the link is one that browsers understand
    link = urlsplit(said[0].rpartition(" ")[2])
    assert link.netloc == f"{address}:{link.port}"
    assert any("other machines" in line for line in said) is open_to_others


def test_enter_prints_another_link(monkeypatch, tmp_path):
    # Given a terminal in which somebody presses Enter twice
    reader, writer = os.openpty()
    pressed = threading.Semaphore(0)
    monkeypatch.setattr(sys, "stdin", os.fdopen(writer, "r"))
    module._on_enter(pressed.release)
    os.write(reader, b"\n\n")
    assert pressed.acquire(timeout=60)
    assert pressed.acquire(timeout=60)


def test_without_a_terminal_nobody_waits_for_enter(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    module._on_enter(lambda: pytest.fail("nobody pressed Enter"))
