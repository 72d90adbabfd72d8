"""File locks between processes. The kernel releases a lock however its holder ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fanin.errors import LocalStackFailed


@contextmanager
def exclusive(path: Path, alone: str | None = None) -> Iterator[None]:
    """Hold an exclusive lock on a file.

    Args:
        path: the file.
        alone: what this process does, as whoever else wants the lock is told; None waits for the lock as
            long as it takes.

    Raises:
        LocalStackFailed: another process holds the lock, and this one does not wait; the message says what
            the other one does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if alone is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LocalStackFailed(path.read_text()) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, (alone or "").encode(), 0)
        yield
    finally:
        os.close(lock)


def held(path: Path) -> str | None:
    """The text that the holder of a lock wrote into its file; None if nobody holds the lock."""
    try:
        lock = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return path.read_text()
    else:
        return None
    finally:
        os.close(lock)
