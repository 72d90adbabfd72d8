"""Consumers that wait for work: each has a record as long as it waits, so that a put can tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from fanin.app.buffers.records import NAMESPACE
from fanin.app.ports import Ports
from fanin.errors import ServiceUnavailable, Throttled

_MORE: Final = 5  # seconds for which the record of a consumer that died outlives its wait


class WaitingConsumers:
    """Counts the consumers that wait.

    Args:
        ports: the directory table, clock and randomness.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def count(self, name: str) -> int:
        """How many consumers are waiting for work of a buffer, up to a hundred."""
        return len(self._ports.directory.page(_namespace(name)).records)

    @contextmanager
    def waiting(self, name: str, until: int) -> Iterator[None]:
        """Count as a consumer of a buffer that waits, until ``until`` in ms."""
        waiter = self._ports.random.bytes(8).hex()
        self.came(name, waiter, until)
        try:
            yield
        finally:
            self.left(name, waiter)

    def came(self, name: str, waiter: str, until: int) -> None:
        """Count a consumer of a buffer from now on, until ``until`` in ms."""
        self._ports.directory.put(_namespace(name), waiter, {}, expires_at=until // 1000 + _MORE)

    def left(self, name: str, waiter: str) -> None:
        """Count it no longer; if that cannot be written, its record expires by itself.

        An error would keep from the consumer the work that it has just received, and such work comes again
        only later, as received once more.
        """
        with suppress(Throttled, ServiceUnavailable):
            self._ports.directory.delete(_namespace(name), waiter)


def _namespace(name: str) -> str:
    return f"{NAMESPACE}/{name}"
