"""Runs the emulator as a daemon; executed by the emulator's own Python, so it imports nothing of fanin.

The daemon holds a lock on its lock file for as long as it lives and keeps its address there. The kernel
drops the lock however the process ends, ``kill -9`` included, so a stale file can never pass for a running
emulator. Usage: ``python -I launcher.py <lock file> <port> <temporary folder> <layers folder> <AUTH>``.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
import queue
import select
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SCHEDULE_TICKS = (("scheduler", "_SCHEDULE_TICK_INTERVAL"), ("eventbridge", "_SCHEDULER_TICK_INTERVAL"))
TURN_SECONDS = 0.02  # between two looks for a worker that is free
LOCK_TRIES = 40  # of 50 ms each; a reader holds the lock for microseconds


def main(lock_file: str, port: str, private_tmp: str, layers: str, auth: str) -> None:
    """Become a daemon that serves AWS on a port of this machine only.

    Args:
        lock_file: locked from here on, and holding ``{"pid", "port", "auth"}`` as JSON.
        port: TCP port, must be free.
        private_tmp: existing folder for everything the emulator and its Lambda workers unpack.
        layers: folder where Lambda layers are unpacked, once for all emulators.
        auth: "true" verifies signatures and enforces policies.
    """
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    _acquire(lock)
    os.ftruncate(lock, 0)
    if os.fork():
        os._exit(0)
    os.setsid()
    address = {"pid": os.getpid(), "port": int(port), "auth": auth == "true"}
    os.pwrite(lock, json.dumps(address).encode(), 0)

    # Lambda workers inherit this environment: no account, proxy or setting of the developer may reach them.
    for name in set(os.environ) - {"PATH", "HOME", "LANG"}:
        del os.environ[name]
    os.environ.update(
        GATEWAY_PORT=port,
        BIND_HOST="127.0.0.1",
        MINISTACK_HOST="127.0.0.1",
        IOT_MTLS_ENABLED="0",
        SFTP_ENABLED="0",
        LOG_LEVEL="WARNING",
        TMPDIR=private_tmp,
        TZ="UTC",
        AUTH=auth,
    )
    _tune(layers)
    sys.argv = ["ministack"]
    app: Any = importlib.import_module("ministack.app")
    app.main()


def _acquire(lock: int) -> None:
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return
    sys.exit("another emulator holds the lock of this folder")


def _tune(layers: str) -> None:
    """Shorten the emulator's waits: schedules to a second, Lambda calls by 50 ms, cold starts by most of it.

    Start no more Lambda workers at once than there are cores, and lose no line of their logs.

    These are private attributes; the emulator's version is pinned, and a rename fails loudly here.
    """
    for service, interval in SCHEDULE_TICKS:
        module: Any = importlib.import_module(f"ministack.services.{service}")
        _require(module, interval)
        setattr(module, interval, 1)
    runtime: Any = importlib.import_module("ministack.core.lambda_runtime")
    _require(runtime, "zipfile")
    for reads_logs in ("_read_stderr", "_drain_stderr", "_drain_stderr_bounded"):
        _require(runtime.Worker, reads_logs)
    runtime.Worker._read_stderr = _read_log  # noqa: SLF001
    runtime.Worker._drain_stderr_bounded = _to_its_end(runtime.Worker._drain_stderr_bounded)  # noqa: SLF001
    runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": _sharing(Path(layers))})
    lambdas: Any = importlib.import_module("ministack.services.lambda_svc")
    _require(lambdas, "acquire_worker")
    _require(runtime, "ensure_spawned")
    lambdas.acquire_worker = _in_turn(lambdas.acquire_worker, runtime.ensure_spawned)


def _require(owner: Any, attribute: str) -> None:
    if not hasattr(owner, attribute):
        sys.exit(f"the emulator has no {attribute}; is its version the pinned one?")


def _sharing(folder: Path) -> type[zipfile.ZipFile]:
    """A ZipFile that unpacks each Lambda layer once for all workers, which then share its bytecode too.

    Unpacking boto3 for every worker takes longer than everything else in a cold start.
    """
    one_at_a_time = threading.Lock()

    class Shared(zipfile.ZipFile):
        def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
            target = Path(path)
            if not target.name.startswith("layer_"):
                super().extractall(path, members, pwd)
                return
            content = json.dumps([(entry.filename, entry.CRC) for entry in self.infolist()])
            shared = folder / hashlib.sha256(content.encode()).hexdigest()
            with one_at_a_time:
                if not shared.exists():
                    draft = shared.with_suffix(f".{os.getpid()}")
                    super().extractall(draft)
                    with suppress(OSError):  # another emulator was faster
                        draft.rename(shared)
                    shutil.rmtree(draft, ignore_errors=True)
            target.rmdir()
            target.symlink_to(shared)
            Path(str(self.filename)).unlink()

    return Shared


class _Log:
    """What a Lambda worker writes, as lines in a queue: read as it comes, and to its end when a call ends.

    The emulator waits some milliseconds for the lines of a call; on a busy machine they come later, and then
    belong to the next call, or to none.
    """

    def __init__(self, pipe: int, lines: queue.Queue[str]) -> None:
        self._pipe = os.dup(pipe)  # the emulator closes its own while this one is being read
        self._lines = lines
        self._begun = b""
        self._ended = False
        self._reading = threading.Lock()

    def follow(self) -> None:
        """Read until the worker has ended."""
        while not self._ended:
            self._written(None)
            self.catch_up()
        os.close(self._pipe)

    def catch_up(self) -> None:
        """Read what has been written until now."""
        with self._reading:
            while not self._ended and self._written(0):
                read = os.read(self._pipe, 65_536)
                self._ended = not read
                *lines, self._begun = (self._begun + read).split(b"\n")
                for line in lines:
                    self._lines.put(line.decode(errors="replace"))

    def _written(self, timeout: int | None) -> bool:
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        return bool(poll.poll(timeout))


def _read_log(worker: Any) -> None:
    """The thread that a worker has for its log."""
    lines = worker._stderr_queue  # noqa: SLF001
    lines.log = _Log(worker._proc.stderr.fileno(), lines)  # noqa: SLF001
    lines.log.follow()


def _to_its_end(drain: Callable[..., str]) -> Callable[..., str]:
    """A ``_drain_stderr_bounded`` that waits for nothing and leaves nothing."""

    def rest_of_log(worker: Any, *waits: float, **more: float) -> str:
        log = getattr(worker._stderr_queue, "log", None)  # noqa: SLF001
        if log is None:  # a worker of another kind
            return drain(worker, *waits, **more)
        log.catch_up()
        return str(worker._drain_stderr())  # noqa: SLF001

    return rest_of_log


def _in_turn(acquire: Callable[..., Any], start: Callable[[Any], None]) -> Callable[..., Any]:
    """An ``acquire_worker`` that starts as many workers at once as there are cores.

    A burst of first calls would start a process for each, and all of them would be slow together. Whoever
    waits for a turn takes a worker that has become free, if there is one first.
    """
    turns = threading.Semaphore(os.cpu_count() or 1)
    none_new = -1  # as a ceiling of workers

    def acquire_worker(*of: Any, **more: Any) -> Any:
        while (free := acquire(*of, **{**more, "max_concurrency": none_new}))[0] is None:
            if not turns.acquire(timeout=TURN_SECONDS):
                continue
            try:
                worker, how = acquire(*of, **more)
                if how == "spawn":
                    with suppress(Exception):  # its call tries again, and tells
                        start(worker)
                return worker, how
            finally:
                turns.release()
        return free

    return acquire_worker


if __name__ == "__main__":
    main(*sys.argv[1:])
