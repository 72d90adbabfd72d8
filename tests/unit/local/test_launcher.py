"""The patches of the emulator: shared layers, complete logs, and workers that start in turn."""

import fcntl
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

from fanin.local import launcher


class TestLock:
    def test_it_is_exclusive(self, tmp_path):
        lock = os.open(tmp_path / "the.lock", os.O_RDWR | os.O_CREAT)
        launcher._acquire(lock)
        other = os.open(tmp_path / "the.lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
        os.close(lock)

    def test_a_second_emulator_ends_with_a_message(self, tmp_path, monkeypatch):
        monkeypatch.setattr(launcher, "LOCK_TRIES", 2)
        held = os.open(tmp_path / "the.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(held, fcntl.LOCK_EX)
        lock = os.open(tmp_path / "the.lock", os.O_RDWR)
        with pytest.raises(SystemExit, match="another emulator is running for this folder"):
            launcher._acquire(lock)
        os.close(lock)
        os.close(held)

    def test_a_reader_that_holds_it_for_a_moment_is_waited_for(self, tmp_path, monkeypatch):
        # Given a reader that lets go while the emulator waits
        reader = os.open(tmp_path / "the.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(reader, fcntl.LOCK_SH)
        monkeypatch.setattr(launcher, "time", SimpleNamespace(sleep=lambda _: os.close(reader)))
        lock = os.open(tmp_path / "the.lock", os.O_RDWR)
        launcher._acquire(lock)
        os.close(lock)


def test_an_emulator_without_the_patched_attribute_is_refused_by_name():
    launcher._require(SimpleNamespace(interval=10), "interval")
    with pytest.raises(SystemExit, match="lacks the attribute interval"):
        launcher._require(SimpleNamespace(), "interval")


@pytest.mark.parametrize(
    ("named", "asked"),
    [
        ("sqs:SendMessageBatch", "sqs:SendMessage"),
        ("sqs:ChangeMessageVisibilityBatch", "sqs:ChangeMessageVisibility"),
        ("sqs:ReceiveMessage", "sqs:ReceiveMessage"),
        ("glue:GetJobBatch", "glue:GetJobBatch"),
        (None, None),
    ],
)
def test_a_batch_of_messages_is_the_action_of_one(named, asked):
    assert launcher._as_one_message(lambda service, method: named, "sqs", "POST") == asked


class TestLayers:
    @pytest.fixture
    def layers(self, tmp_path: Path) -> Path:
        layers = tmp_path / "layers"
        layers.mkdir()
        return layers

    def unpack(self, layers: Path, folder: Path, name: str, **content: str) -> Path:
        """Unpack a zip file of files, as the emulator does for a worker."""
        file = folder / f"{name}.zip"
        with ZipFile(file, "w") as zipped:
            for path, text in content.items():
                zipped.writestr(path, text)
        target = folder / name
        target.mkdir()
        with launcher._sharing(layers)(file) as shared:
            shared.extractall(target)
        return target

    def test_a_layer_is_unpacked_once_for_all_workers(self, layers, tmp_path):
        first = self.unpack(layers, tmp_path, "layer_1", module="one")
        second = self.unpack(layers, tmp_path, "layer_2", module="one")
        assert (first / "module").read_text() == "one"
        assert first.is_symlink()
        assert first.resolve() == second.resolve()
        assert [entry.resolve() for entry in layers.iterdir()] == [first.resolve()]
        assert not (tmp_path / "layer_1.zip").exists()

    def test_other_content_is_another_layer(self, layers, tmp_path):
        first = self.unpack(layers, tmp_path, "layer_1", module="one")
        second = self.unpack(layers, tmp_path, "layer_2", module="two")
        assert ((first / "module").read_text(), (second / "module").read_text()) == ("one", "two")

    def test_no_file_of_a_layer_is_looked_at_one_by_one_and_none_leads_outside(self, layers, tmp_path):
        inside = self.unpack(layers, tmp_path, "layer_1", **{"../../outside": "x"})
        assert [file.name for file in inside.iterdir()] == ["outside"]
        with ZipFile(tmp_path / "layer_2.zip", "w") as zipped:
            zipped.writestr("module", "x")
        with launcher._sharing(layers)(tmp_path / "layer_2.zip") as shared:
            assert shared.namelist() == []

    def test_what_is_not_a_layer_is_unpacked_where_it_belongs(self, layers, tmp_path):
        code = self.unpack(layers, tmp_path, "code", handler="x")
        assert not code.is_symlink()
        assert (code / "handler").read_text() == "x"
        assert list(layers.iterdir()) == []


class TestLog:
    @pytest.fixture
    def pipe(self) -> Iterator[tuple[int, int]]:
        read, write = os.pipe()
        yield read, write
        for end in (read, write):
            try:
                os.close(end)
            except OSError:
                continue  # the test has closed it

    def lines(self, log: launcher._Log) -> list[str]:
        return [log._lines.get_nowait() for _ in range(log._lines.qsize())]

    def test_it_reads_what_is_there_without_waiting(self, pipe):
        log = launcher._Log(pipe[0], queue.Queue())
        log.catch_up()
        assert self.lines(log) == []
        os.write(pipe[1], b"one\ntwo\nthr")
        log.catch_up()
        assert self.lines(log) == ["one", "two"]
        os.write(pipe[1], b"ee\n\xff\n")
        log.catch_up()
        assert self.lines(log) == ["three", "\N{REPLACEMENT CHARACTER}"]

    def test_it_follows_until_the_worker_has_ended(self, pipe):
        log = launcher._Log(pipe[0], queue.Queue())
        following = threading.Thread(target=log.follow)
        following.start()
        os.write(pipe[1], b"one\n")
        assert log._lines.get(timeout=60) == "one"
        os.close(pipe[1])
        following.join(60)
        assert not following.is_alive()

    def test_the_rest_of_a_call_has_all_its_lines(self, pipe):
        # Given a worker whose log has been written to, but not read yet
        lines: queue.Queue[str] = queue.Queue()
        lines.log = launcher._Log(pipe[0], lines)
        worker = SimpleNamespace(
            _stderr_queue=lines, _drain_stderr=lambda: "|".join(lines.get() for _ in range(lines.qsize()))
        )
        os.write(pipe[1], b"END 1\nREPORT 1\n")
        # When the emulator asks for the lines of the call
        rest = launcher._to_its_end(lambda *_: "too early")(worker, 0.05)
        # Then they are complete
        assert rest == "END 1|REPORT 1"

    def test_a_worker_of_another_kind_is_left_to_the_emulator(self):
        worker = SimpleNamespace(_stderr_queue=queue.Queue())
        drained = launcher._to_its_end(lambda worker, *waits, **more: f"{waits} {more}")
        assert drained(worker, 1, most=2) == "(1,) {'most': 2}"


class Pool:
    """Acquires workers as the emulator does: a free one, else a new one unless none may be started."""

    def __init__(self) -> None:
        self.free: list[str] = []
        self.starting = 0
        self.most_starting = 0
        self.started = 0
        self._lock = threading.Lock()
        self._two = threading.Barrier(2, timeout=60)

    def acquire(self, function: str, *, max_concurrency: int = 10) -> tuple[str | None, str]:
        with self._lock:
            if self.free:
                return self.free.pop(), "reuse"
            if max_concurrency < 0:
                return None, "throttled"
            self.started += 1
            return f"{function}-{self.started}", "spawn"

    def start(self, worker: str) -> None:
        with self._lock:
            self.starting += 1
            self.most_starting = max(self.most_starting, self.starting)
        self._two.wait()
        time.sleep(0.05)  # a third one would come by now
        with self._lock:
            self.starting -= 1


class TestTurns:
    @pytest.fixture
    def cores(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
        return lambda count: monkeypatch.setattr(os, "cpu_count", lambda: count)

    def test_no_more_workers_start_at_once_than_there_are_cores(self, cores):
        cores(2)
        pool = Pool()
        acquire = launcher._in_turn(pool.acquire, pool.start)
        callers = [threading.Thread(target=acquire, args=("f",)) for _ in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert (pool.started, pool.most_starting) == (8, 2)

    def test_a_caller_in_the_queue_takes_a_worker_that_becomes_free(self, cores):
        # Given one core, on which a worker is starting
        cores(1)
        pool = Pool()
        begun, go_on = threading.Event(), threading.Event()

        def start(worker: str) -> None:
            begun.set()
            go_on.wait(60)

        acquire = launcher._in_turn(pool.acquire, start)
        first = threading.Thread(target=acquire, args=("f",))
        first.start()
        begun.wait(60)
        # When another call waits, and a worker becomes free
        taken: list[tuple[str | None, str]] = []
        second = threading.Thread(target=lambda: taken.append(acquire("f")))
        second.start()
        pool.free.append("old")
        second.join(60)
        # Then it takes that one, while the first is still starting
        assert taken == [("old", "reuse")]
        assert pool.started == 1
        go_on.set()
        first.join(60)

    def test_a_start_that_fails_is_left_to_the_call(self, cores):
        cores(1)
        pool = Pool()

        def fail(worker: str) -> None:
            raise RuntimeError("no memory")

        acquire = launcher._in_turn(pool.acquire, fail)
        assert acquire("f") == ("f-1", "spawn")
        assert acquire("f") == ("f-2", "spawn")
