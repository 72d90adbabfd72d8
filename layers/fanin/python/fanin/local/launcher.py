"""Runs the emulator as a daemon. The emulator's own Python runs this script, so it imports nothing of fanin.

The daemon holds a lock on its lock file as long as it lives, and writes its address there. The kernel
releases the lock however the process ends, also after ``kill -9``; a stale file is therefore never mistaken
for a running emulator.

Usage: ``python -I launcher.py <lock file> <port> <temporary folder> <layers folder> <AUTH>``.
"""

import fcntl
import hashlib
import importlib
import json
import os
import queue
import runpy
import select
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TUNED_QUEUES = Path(__file__).with_name("tuned_queues.py")  # this folder is not on the path of this process
SCHEDULE_TICKS = (("scheduler", "_SCHEDULE_TICK_INTERVAL"), ("eventbridge", "_SCHEDULER_TICK_INTERVAL"))
TURN_SECONDS = 0.02  # between two checks for a free worker
LOCK_TRIES = 40  # 50 ms apart; whoever only reads the file holds the lock for microseconds


def main(lock_file: str, port: str, private_tmp: str, layers: str, auth: str) -> None:
    """Become a daemon that serves AWS on a port of the loopback interface.

    Args:
        lock_file: stays locked as long as the daemon lives; gets ``{"pid", "port", "auth"}`` as JSON.
        port: TCP port, which must be free.
        private_tmp: existing folder for temporary files of the emulator and its Lambda workers.
        layers: folder for unpacked Lambda layers, which all emulators share.
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

    # Lambda workers inherit this environment. They must not see accounts, proxies or settings of the
    # developer.
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
    _module("app", "main").main()


def _acquire(lock: int) -> None:
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return
    sys.exit("another emulator is running for this folder; it holds the lock")


def _tune(layers: str) -> None:
    """Patch the emulator: make it faster, let no message get lost, and name SQS actions as AWS does.

    Schedules are checked every second instead of every ten. A Lambda call takes 50 ms less, and a cold start
    a fraction of its time. At most as many Lambda workers start at once as there are cores. Functions' logs
    are complete. Messages are received and deleted without going through the whole queue. Dead letters can be
    moved back, with ``StartMessageMoveTask``.

    All of this patches private attributes. The version of the emulator is pinned; if an attribute is renamed
    in another version, the start fails here with a message.
    """
    for service, interval in SCHEDULE_TICKS:
        setattr(_module(f"services.{service}", interval), interval, 1)
    runtime = _module("core.lambda_runtime", "zipfile", "ensure_spawned")
    for reads_logs in ("_read_stderr", "_drain_stderr", "_drain_stderr_bounded"):
        _require(runtime.Worker, reads_logs)
    runtime.Worker._read_stderr = _read_log
    runtime.Worker._drain_stderr_bounded = _to_its_end(runtime.Worker._drain_stderr_bounded)
    runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": _sharing(Path(layers))})
    lambdas = _module("services.lambda_svc", "acquire_worker")
    lambdas.acquire_worker = _in_turn(lambdas.acquire_worker, runtime.ensure_spawned)
    actions = _module("core.iam_actions", "extract_iam_action")
    actions.extract_iam_action = partial(_as_one_message, actions.extract_iam_action)
    sqs = _module("services.sqs", "_Err", "_HANDLERS", "_queue_by_arn", "_queues_lock", "esm_wake")
    sqs._HANDLERS["StartMessageMoveTask"] = partial(_start_message_move_task, sqs)
    runpy.run_path(str(TUNED_QUEUES))["tune"](_module)


def _module(name: str, *attributes: str) -> Any:
    """A module of the emulator, which must have these attributes."""
    module = importlib.import_module(f"ministack.{name}")
    for attribute in attributes:
        _require(module, attribute)
    return module


def _as_one_message(extract: Callable[..., str | None], *request: Any) -> str | None:
    """Replaces ``extract_iam_action``: in IAM, a batch of messages is the action of one message.

    AWS has no action ``sqs:SendMessageBatch``, ``sqs:DeleteMessageBatch`` or
    ``sqs:ChangeMessageVisibilityBatch``, so no policy for AWS allows one.
    """
    action = extract(*request)
    return action.removesuffix("Batch") if action and action.startswith("sqs:") else action


def _require(owner: Any, attribute: str) -> None:
    if not hasattr(owner, attribute):
        sys.exit(f"the emulator lacks the attribute {attribute}; is it another version than the pinned one?")


def _sharing(folder: Path) -> type[zipfile.ZipFile]:
    """A ZipFile that unpacks each Lambda layer once for all workers; they then share its bytecode, too.

    Unpacking boto3 for each worker would take longer than the rest of a cold start.
    """
    one_at_a_time = threading.Lock()

    class Shared(zipfile.ZipFile):
        def namelist(self) -> list[str]:
            # The emulator resolves the path of each file of a layer, only to see that it stays in its folder.
            # With thousands of files that is most of a cold start, and extractall sees to it anyway.
            return [] if Path(str(self.filename)).name.startswith("layer_") else super().namelist()

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
                    super().extractall(draft, self.infolist())
                    with suppress(OSError):  # another emulator unpacked it first
                        draft.rename(shared)
                    shutil.rmtree(draft, ignore_errors=True)
            target.rmdir()
            target.symlink_to(shared)
            Path(str(self.filename)).unlink()

    return Shared


class _Log:
    """Reads the log of a Lambda worker into a queue of lines: all the time, and completely when a call ends.

    The emulator itself waits only some milliseconds for the lines of a call. On a busy machine lines come
    later; it then logs them with the next call, or never.
    """

    def __init__(self, pipe: int, lines: queue.Queue[str]) -> None:
        self._pipe = os.dup(pipe)  # the emulator closes its own descriptor while this one is still being read
        self._lines = lines
        self._incomplete = b""
        self._ended = False
        self._reading = threading.Lock()

    def follow(self) -> None:
        """Read until the worker has ended."""
        while not self._ended:
            self._readable(None)
            self.catch_up()
        os.close(self._pipe)

    def catch_up(self) -> None:
        """Read what the worker has written so far."""
        with self._reading:
            while not self._ended and self._readable(0):
                read = os.read(self._pipe, 65_536)
                self._ended = not read
                *lines, self._incomplete = (self._incomplete + read).split(b"\n")
                for line in lines:
                    self._lines.put(line.decode(errors="replace"))

    def _readable(self, timeout: int | None) -> bool:
        """Whether there is something to read, or the end; waits for it if the timeout (ms) is None."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        return bool(poll.poll(timeout))


def _read_log(worker: Any) -> None:
    """Replaces ``Worker._read_stderr``, which runs in a thread for each worker."""
    lines = worker._stderr_queue
    lines.log = _Log(worker._proc.stderr.fileno(), lines)
    lines.log.follow()


def _to_its_end(drain: Callable[..., str]) -> Callable[..., str]:
    """Replaces ``Worker._drain_stderr_bounded``: returns all lines of the call, without waiting."""

    def rest_of_log(worker: Any, *waits: float, **more: float) -> str:
        log = getattr(worker._stderr_queue, "log", None)
        if log is None:  # a worker of another kind
            return drain(worker, *waits, **more)
        log.catch_up()
        return str(worker._drain_stderr())

    return rest_of_log


def _start_message_move_task(sqs: Any, data: Any, _: str) -> Any:
    """Moves the visible messages of a dead-letter queue at once: to where they died, or to another queue."""
    source, target = data.get("SourceArn", ""), data.get("DestinationArn")
    with sqs._queues_lock:
        queue, now = sqs._queue_by_arn(source), time.time()
        if queue is None:
            raise sqs._Err("ResourceNotFoundException", f"There is no queue {source}.")
        for message in list(queue["messages"]):
            died_in = message.get("sys", {}).get("DeadLetterQueueSourceArn", "")
            to = sqs._queue_by_arn(target or died_in)
            if to is not None and message["visible_at"] <= now:
                fresh = {"receipt_handle": None, "receive_count": 0, "visible_at": now}
                to["messages"].append({**message, **fresh, "enqueued_at": now})
                with suppress(ValueError):  # another thread has removed it
                    queue["messages"].remove(message)
    sqs.esm_wake.set()
    return {"TaskHandle": f"{source}#{now}"}


def _in_turn(acquire: Callable[..., Any], start: Callable[[Any], None]) -> Callable[..., Any]:
    """Replaces ``acquire_worker``: at most as many workers start at a time as there are cores.

    A burst of first calls would start a process for each call, and all of them would be slow: on two cores
    32 calls at once take 3 s, and without this 13 s to 25 s. A call that waits for its turn takes a worker
    that has become free in the meantime, if there is one.
    """
    turns = threading.Semaphore(os.cpu_count() or 1)
    none_new = -1  # as the highest number of workers: start none

    def acquire_worker(*of: Any, **more: Any) -> Any:
        while (free := acquire(*of, **{**more, "max_concurrency": none_new}))[0] is None:
            if not turns.acquire(timeout=TURN_SECONDS):
                continue
            try:
                worker, how = acquire(*of, **more)
                if how == "spawn":
                    with suppress(Exception):  # the call starts it again, and reports the error
                        start(worker)
                return worker, how
            finally:
                turns.release()
        return free

    return acquire_worker


if __name__ == "__main__":
    main(*sys.argv[1:])
