"""File locks between processes: one holder at a time, and none after its end."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fanin.errors import LocalStackFailed
from fanin.local import locks

HOLDER = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.write(lock, sys.argv[2].encode())
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(path: Path, text: str = "") -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a lock and writes a text into its file."""
    command = [sys.executable, "-c", HOLDER, str(path), text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "the.lock"


class TestExclusive:
    def test_it_makes_the_folder_and_can_be_taken_again(self, path):
        for _ in range(2):
            with locks.exclusive(path):
                assert path.exists()

    def test_an_error_releases_it(self, path):
        with pytest.raises(ZeroDivisionError), locks.exclusive(path):
            raise ZeroDivisionError
        with locks.exclusive(path):
            pass

    def test_whoever_does_not_wait_is_told_what_the_holder_does(self, path):
        with (
            locks.exclusive(path, "the demo runs since noon"),
            pytest.raises(LocalStackFailed, match=r"^the demo runs since noon$"),
            locks.exclusive(path, "a second one"),
        ):
            pass
        with locks.exclusive(path, "a third one"):
            assert path.read_text() == "a third one"

    def test_it_waits_for_another_process_and_gets_the_lock_when_that_is_killed(self, path):
        # Given a lock that another process holds
        path.parent.mkdir()
        entered = threading.Event()

        def enter() -> None:
            with locks.exclusive(path):
                entered.set()

        with holder(path) as process:
            waiting = threading.Thread(target=enter)
            waiting.start()
            assert not entered.wait(0.2)
            # When that is killed
            process.kill()
            # Then the lock is free
            assert entered.wait(60)
            waiting.join()


class TestHeld:
    def test_a_file_that_is_missing_or_left_over_is_held_by_nobody(self, path, tmp_path):
        stale = tmp_path / "stale.lock"
        stale.write_text("address")
        assert locks.held(path) is locks.held(stale) is None

    @pytest.mark.parametrize("text", ["address", ""])
    def test_it_gives_what_the_holder_wrote(self, tmp_path, text):
        lock = tmp_path / "the.lock"
        with holder(lock, text):
            assert locks.held(lock) == text
        assert locks.held(lock) is None

    def test_asking_does_not_take_the_lock(self, path):
        with locks.exclusive(path):
            assert locks.held(path) is not None
        assert locks.held(path) is None
        with locks.exclusive(path):
            pass
