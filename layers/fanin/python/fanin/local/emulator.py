"""Installs the emulator of AWS, and starts and stops its process.

MiniStack serves the AWS services that fanin uses on one port, and runs Lambda functions as processes. It has
a virtual environment of its own, because its Lambda workers can import whatever that environment contains:
with fanin's own environment, nobody would notice a package that is missing from a Lambda layer.
"""

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


def installer(python: Path | str = sys.executable) -> list[str]:
    """The command that installs packages for an interpreter; requirements and options of both follow.

    Args:
        python: the interpreter, which need not have pip.
    """
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        return [str(uv), "pip", "install", "--quiet", "--python", str(python)]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    return [*pip, "--quiet", "--disable-pip-version-check"]


VERSION: Final = "1.5.33"
HOST: Final = "127.0.0.1"
START_SECONDS: Final = 30.0
HEALTH_SECONDS: Final = 2.0
STOP_SECONDS: Final = 10.0
START_TRIES: Final = 3  # another process may take the free port that we chose before the emulator binds it
LAUNCHER = Path(__file__).with_name("launcher.py")
"""The script that becomes the emulator; a test may put its own in between."""


@dataclass(frozen=True)
class Emulator:
    """A running emulator.

    Attributes:
        pid: id of its process, which leads a process group that includes its Lambda workers.
        port: TCP port where it listens, on this machine only.
        auth: whether it verifies signatures and enforces policies.
    """

    pid: int
    port: int
    auth: bool

    @property
    def endpoint_url(self) -> str:
        """Base URL of all AWS services."""
        return f"http://{HOST}:{self.port}"

    def healthy(self) -> bool:
        """Whether it answers within two seconds."""
        connection = HTTPConnection(HOST, self.port, timeout=HEALTH_SECONDS)
        try:
            connection.request("GET", "/_ministack/health")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


def install(home: Path, report: Callable[[str], None]) -> Path:
    """Install the emulator into a virtual environment, unless this version is there already.

    Args:
        home: folder of the environment.
        report: called with a line of text before a step that takes long.

    Returns:
        The Python interpreter of the environment.

    Raises:
        LocalStackFailed: a command failed; the message ends with its output.
    """
    python = home / "bin" / "python"
    with locks.exclusive(home.with_name(f"{home.name}.install.lock")):
        ready = home / f"ministack-{VERSION}-python{sys.version_info.major}.{sys.version_info.minor}"
        if ready.exists() and python.exists():
            return python
        report(f"installing the emulator, ministack {VERSION}, once")
        # Without pip the new environment needs neither ensurepip nor virtualenv.
        _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(home)])
        _run([*installer(python), f"ministack=={VERSION}"])
        ready.touch()
        return python


def _run(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LocalStackFailed(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout).strip()}")


def running(folder: Path) -> Emulator | None:
    """The running emulator of a state folder, healthy or not; None if there is none."""
    while (address := locks.held(_lock_file(folder))) is not None:
        if address:
            return Emulator(**json.loads(address))
        time.sleep(0.01)  # it has the lock, and will write its address in a moment
    return None


def start(folder: Path, python: Path, *, port: int | None = None, auth: bool = False) -> Emulator:
    """Start an emulator and wait until it answers.

    Args:
        folder: state folder for its lock, log and temporary files; no other emulator may use it.
        python: interpreter of the emulator's environment.
        port: TCP port; None chooses a free one.
        auth: verify signatures and enforce policies.

    Raises:
        LocalStackFailed: the port is in use, or the emulator did not start; the message ends with its log.
    """
    try:
        _free_port(port or 0)
    except OSError:
        raise LocalStackFailed(
            f"port {port} is in use; pass another one, or none to have a free one chosen"
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(1 if port is not None else START_TRIES):
        shutil.rmtree(_tmp(folder), ignore_errors=True)
        _tmp(folder).mkdir()
        _launch(folder, python, port or _free_port(), auth=auth)
        if emulator := _wait(folder):
            return emulator
        stop(folder)
    tail = "\n".join(log_file(folder).read_text(errors="replace").splitlines()[-15:])
    raise LocalStackFailed(f"the emulator did not start; its log, {log_file(folder)}, ends with:\n{tail}")


def _launch(folder: Path, python: Path, port: int, *, auth: bool) -> None:
    layers = python.parents[2] / "unpacked-layers"
    arguments = [str(_lock_file(folder)), str(port), str(_tmp(folder)), str(layers), str(auth).lower()]
    with log_file(folder).open("wb") as log:
        subprocess.run(  # noqa: S603
            [str(python), "-I", str(LAUNCHER), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,  # a failure shows in the lock and in the log
        )


def _wait(folder: Path) -> Emulator | None:
    deadline = time.monotonic() + START_SECONDS
    while (emulator := running(folder)) and time.monotonic() < deadline:
        if emulator.healthy():
            return emulator
        time.sleep(0.05)
    return None


def stop(folder: Path) -> bool:
    """Kill the emulator and its Lambda workers, and remove their temporary files.

    All its state is in memory, so the whole process group can be killed at once.

    Returns:
        Whether an emulator was running.

    Raises:
        LocalStackFailed: the process is still there after ten seconds.
    """
    emulator = running(folder)
    if emulator:
        os.killpg(emulator.pid, signal.SIGKILL)
        deadline = time.monotonic() + STOP_SECONDS
        while running(folder):
            if time.monotonic() > deadline:
                raise LocalStackFailed(
                    f"the emulator, process {emulator.pid}, still runs {STOP_SECONDS:.0f} s after SIGKILL"
                )
            time.sleep(0.01)
    shutil.rmtree(_tmp(folder), ignore_errors=True)
    return emulator is not None


def log_file(folder: Path) -> Path:
    """The file to which the emulator and its Lambda workers log."""
    return folder / "emulator.log"


def _lock_file(folder: Path) -> Path:
    return folder / "emulator.lock"


def _tmp(folder: Path) -> Path:
    return folder / "tmp"


def _free_port(port: int = 0) -> int:
    """A port that is free: this one, or any. An OSError says that it is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((HOST, port))
        return int(probe.getsockname()[1])
