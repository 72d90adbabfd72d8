"""The emulator's process is installed, found, started and stopped; a stand-in replaces the emulator."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fanin.errors import LocalStackFailed
from fanin.local import emulator, locks
from fanin.local.emulator import Emulator
from fanin.local.stack import CHECKOUT

# Called as the emulator's Python is: -I launcher.py <lock> <port> <tmp> <layers> <auth>
STAND_IN = """#!{python}
import fcntl, json, os, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
_, _, lock_file, port, tmp, layers, auth = sys.argv[1:]
if {fails}:
    sys.exit("port is taken, says the stand-in")
lock = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.ftruncate(lock, 0)
if os.fork():
    os._exit(0)
os.setsid()
os.pwrite(lock, json.dumps({{"pid": os.getpid(), "port": int(port), "auth": auth == "true"}}).encode(), 0)
print("tmp is", tmp, flush=True)
if not os.fork():
    os.close(lock)
    worker = os.open(lock_file + ".worker", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(worker, fcntl.LOCK_EX)
    time.sleep(600)

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/_ministack/health" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass

HTTPServer(("127.0.0.1", int(port)), Health).serve_forever()
"""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time."""
    for seconds in ("HEALTH_SECONDS", "START_SECONDS", "STOP_SECONDS"):
        monkeypatch.setattr(emulator, seconds, 60.0)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / ".fanin"
    yield folder
    emulator.stop(folder)


def stand_in(tmp_path: Path, *, fails: bool = False) -> Path:
    script = tmp_path / "home" / "bin" / "python"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(STAND_IN.format(python=sys.executable, fails=fails))
    script.chmod(0o755)
    return script


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def serving(status: int) -> Iterator[int]:
    """A server that answers every request with a status; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class TestHealthy:
    @pytest.mark.parametrize(("status", "healthy"), [(200, True), (404, False), (500, False)])
    def test_it_is_if_it_answers_with_200(self, status, healthy):
        with serving(status) as port:
            assert Emulator(1, port, auth=False).healthy() is healthy

    def test_it_is_not_if_nobody_listens(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            assert not Emulator(1, probe.getsockname()[1], auth=False).healthy()

    def test_it_is_not_if_it_never_answers(self, monkeypatch):
        monkeypatch.setattr(emulator, "HEALTH_SECONDS", 0.1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            assert not Emulator(1, silent.getsockname()[1], auth=False).healthy()


class TestInstall:
    @pytest.fixture
    def commands(self, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
        """The commands that are run, in place of running them; venv makes its folder."""
        ran: list[list[str]] = []

        def run(command: list[str]) -> None:
            ran.append(command)
            if "venv" in command:
                python = Path(command[-1]) / "bin" / "python"
                python.parent.mkdir(parents=True)
                python.touch()

        monkeypatch.setattr(emulator, "_run", run)
        return ran

    def test_the_pinned_version_goes_into_an_environment_of_its_own_once(self, tmp_path, commands):
        said: list[str] = []
        home = tmp_path / "emulator"
        first = emulator.install(home, said.append)
        assert emulator.install(home, said.append) == first == home / "bin" / "python"
        venv, pip = commands
        assert venv[-1] == str(home)
        assert f"ministack=={emulator.VERSION}" in pip
        assert pip[pip.index("--python") + 1] == str(first)
        assert len(said) == 1

    def test_another_version_installs_again(self, tmp_path, commands, monkeypatch):
        emulator.install(tmp_path / "emulator", print)
        monkeypatch.setattr(emulator, "VERSION", "9.9")
        (tmp_path / "emulator" / "bin" / "python").unlink()
        (tmp_path / "emulator" / "bin").rmdir()
        emulator.install(tmp_path / "emulator", print)
        assert "ministack==9.9" in commands[-1]

    def test_a_failed_installation_is_not_taken_for_one(self, tmp_path, monkeypatch):
        def fail(command: list[str]) -> None:
            raise LocalStackFailed("no index")

        monkeypatch.setattr(emulator, "_run", fail)
        for _ in range(2):
            with pytest.raises(LocalStackFailed, match="no index"):
                emulator.install(tmp_path / "emulator", print)

    def test_a_command_that_fails_is_told_with_its_output(self):
        code = "import sys; sys.exit('no such package')"
        with pytest.raises(LocalStackFailed, match=r"failed:\nno such package"):
            emulator._run([sys.executable, "-c", code])


class TestStartAndStop:
    def test_it_runs_until_it_is_stopped(self, folder, tmp_path):
        # Given nothing
        assert emulator.running(folder) is None
        # When it starts
        started = emulator.start(folder, stand_in(tmp_path), auth=True)
        # Then it is found by its folder, and answers
        assert emulator.running(folder) == started
        assert (started.auth, started.healthy()) == (True, True)
        assert started.endpoint_url == f"http://127.0.0.1:{started.port}"
        assert emulator.log_file(folder).read_text() == f"tmp is {folder / 'tmp'}\n"
        # And when it is stopped, process and temporary files are gone
        (folder / "tmp" / "unpacked").touch()
        assert emulator.stop(folder)
        assert emulator.running(folder) is None
        assert not started.healthy()
        assert not (folder / "tmp").exists()

    def test_its_workers_are_killed_with_it(self, folder, tmp_path):
        # Given an emulator with a worker, which holds a lock as long as it lives
        emulator.start(folder, stand_in(tmp_path))
        worker = folder / "emulator.lock.worker"
        until(lambda: locks.held(worker) is not None)
        # When it is stopped, Then the worker has ended, too
        emulator.stop(folder)
        until(lambda: locks.held(worker) is None)

    def test_make_clean_stops_that_of_a_demo_before_it_removes_the_lock(self, tmp_path):
        demo = emulator.start(tmp_path / ".fanin" / "demo" / ".fanin", stand_in(tmp_path))
        programs = Path(sys.executable).parent
        command = ["make", "-C", tmp_path, "-f", CHECKOUT / "Makefile", f"BIN={programs}", "clean"]
        subprocess.run(command, check=True)
        assert not demo.healthy()
        assert not (tmp_path / ".fanin").exists()

    def test_stopping_nothing_is_no_error(self, folder):
        assert not emulator.stop(folder)

    def test_it_takes_the_port_that_is_asked_for(self, folder, tmp_path):
        port = emulator._free_port()
        assert emulator.start(folder, stand_in(tmp_path), port=port).port == port

    def test_a_port_in_use_is_refused_before_anything_starts(self, folder, tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(LocalStackFailed, match=f"port {port} is in use; pass another one"):
                emulator.start(folder, stand_in(tmp_path), port=port)
        assert not folder.exists()

    @pytest.mark.parametrize("port", [None, "free"])
    def test_one_that_does_not_start_is_told_with_its_log(self, folder, tmp_path, port):
        with pytest.raises(LocalStackFailed, match=r"did not start; .*, ends with:\nport is taken"):
            emulator.start(
                folder, stand_in(tmp_path, fails=True), port=emulator._free_port() if port else None
            )

    def test_an_emulator_that_is_killed_is_not_running(self, folder, tmp_path):
        started = emulator.start(folder, stand_in(tmp_path))
        os.killpg(started.pid, 9)
        until(lambda: emulator.running(folder) is None)
        assert (folder / "emulator.lock").read_text() != ""
