"""The emulator's process: installed apart, started as a daemon, stopped without a trace.

MiniStack serves the AWS services fanin uses on one port and runs Lambda functions as processes. It lives
in a virtual environment of its own, since its workers see that environment: in fanin's, a package missing
from a Lambda layer would stay hidden.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from fanin.errors import LocalStackFailed
from fanin.local import locks

VERSION: Final = "1.5.33"
HOST: Final = "127.0.0.1"
START_SECONDS: Final = 30.0
HEALTH_SECONDS: Final = 2.0
STOP_SECONDS: Final = 10.0
START_TRIES: Final = 3  # another process may take the port between our choice and the emulator's bind
LOG_TAIL_LINES: Final = 15


@dataclass(frozen=True)
class Emulator:
    """A running emulator.

    Attributes:
        pid: its process, leader of a group that holds its Lambda workers too.
        port: where it listens, on this machine only.
        auth: whether it verifies signatures and enforces policies.
    """

    pid: int
    port: int
    auth: bool

    @property
    def endpoint_url(self) -> str:
        """Base URL of every service."""
        return f"http://{HOST}:{self.port}"

    def healthy(self) -> bool:
        """Whether it answers."""
        connection = HTTPConnection(HOST, self.port, timeout=HEALTH_SECONDS)
        try:
            connection.request("GET", "/_ministack/health")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


def install(home: Path, report: Callable[[str], None]) -> Path:
    """Make the emulator's virtual environment, once.

    Args:
        home: folder of the environment.
        report: told when there is something to wait for.

    Returns:
        Its Python interpreter.

    Raises:
        LocalStackFailed: the environment could not be made; the message holds pip's own.
    """
    python = home / "bin" / "python"
    with locks.exclusive(home.with_name(f"{home.name}.install.lock")):
        ready = home / f"ministack-{VERSION}-python{sys.version_info.major}.{sys.version_info.minor}"
        if ready.exists() and python.exists():
            return python
        report(f"installing the emulator, ministack {VERSION}, once")
        # Our own pip installs into it, so neither ensurepip nor virtualenv is needed.
        _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(home)])
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        _run([*pip, "--disable-pip-version-check", f"ministack=={VERSION}"])
        ready.touch()
        return python


def _run(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LocalStackFailed(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout).strip()}")


def running(folder: Path) -> Emulator | None:
    """The emulator that runs for a state folder, healthy or not; None if none does."""
    while (address := locks.held(_lock_file(folder))) is not None:
        if address:
            return Emulator(**json.loads(address))
        time.sleep(0.01)  # it holds the lock and is about to write its address
    return None


def start(folder: Path, python: Path, *, port: int | None = None, auth: bool = False) -> Emulator:
    """Start an emulator and wait until it answers.

    Args:
        folder: state folder, for its lock, log and temporary files; none must run for it.
        python: interpreter of the emulator's environment.
        port: TCP port; None takes a free one.
        auth: verify signatures and enforce policies.

    Raises:
        LocalStackFailed: the port is taken, or it did not come up; the message ends with its log.
    """
    if port is not None and not _free(port):
        raise LocalStackFailed(f"port {port} is in use; name another one, or none to have a free one chosen")
    folder.mkdir(parents=True, exist_ok=True)
    tries = 1 if port is not None else START_TRIES
    for last in (attempt == tries - 1 for attempt in range(tries)):
        shutil.rmtree(_tmp(folder), ignore_errors=True)
        _tmp(folder).mkdir()
        _launch(folder, python, port if port is not None else _free_port(), auth=auth)
        if emulator := _wait(folder):
            return emulator
        stop(folder)
        if last:
            break
    tail = "\n".join(log_file(folder).read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
    raise LocalStackFailed(f"the emulator did not start; its log, {log_file(folder)}, ends with:\n{tail}")


def _launch(folder: Path, python: Path, port: int, *, auth: bool) -> None:
    launcher = Path(__file__).with_name("launcher.py")
    layers = python.parents[2] / "unpacked-layers"
    arguments = [str(_lock_file(folder)), str(port), str(_tmp(folder)), str(layers), str(auth).lower()]
    with log_file(folder).open("wb") as log:
        subprocess.run(  # noqa: S603
            [str(python), "-I", str(launcher), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,  # what went wrong shows in the lock and the log
        )


def _wait(folder: Path) -> Emulator | None:
    deadline = time.monotonic() + START_SECONDS
    while (emulator := running(folder)) and time.monotonic() < deadline:
        if emulator.healthy():
            return emulator
        time.sleep(0.05)
    return None


def stop(folder: Path) -> bool:
    """End the emulator and its Lambda workers, and remove their temporary files.

    Nothing is worth a slow goodbye, since all its state is in memory: the whole process group is killed.

    Returns:
        Whether one was running.

    Raises:
        LocalStackFailed: it would not die.
    """
    emulator = running(folder)
    if emulator:
        os.killpg(emulator.pid, signal.SIGKILL)
        deadline = time.monotonic() + STOP_SECONDS
        while running(folder):
            if time.monotonic() > deadline:
                raise LocalStackFailed(f"the emulator, process {emulator.pid}, does not end")
            time.sleep(0.01)
    shutil.rmtree(_tmp(folder), ignore_errors=True)
    return emulator is not None


def log_file(folder: Path) -> Path:
    """Where the emulator and its workers log."""
    return folder / "emulator.log"


def _lock_file(folder: Path) -> Path:
    return folder / "emulator.lock"


def _tmp(folder: Path) -> Path:
    return folder / "tmp"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
