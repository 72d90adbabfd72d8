"""Claims on the queues that users bring: while one buffer is defined with a queue, no other is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fanin.app.buffers.records import GRAVE, BufferRecords
from fanin.app.buffers.slots import TRIES, contended
from fanin.app.ports import Ports
from fanin.errors import InvalidRequest, Throttled

_NAMESPACE: Final = "/buffer-queues"  # in the directory table; the names are URLs


class QueueClaims:
    """Keeps two buffers from sharing a queue: each would receive, and so delay, the other's work.

    Once a buffer is defined, its record says which queue it has. A claim covers the time between looking at
    all records and writing one, in which nobody else may do the same for the queue.

    Args:
        ports: the directory table and the clock.
        records: the buffers' records.
    """

    def __init__(self, ports: Ports, records: BufferRecords) -> None:
        self._ports = ports
        self._records = records

    @contextmanager
    def claimed(self, queue: str, name: str) -> Iterator[None]:
        """Hold the claim on a queue, which no other buffer has, for a buffer that is being defined.

        The claim of a process that died holds up other buffers until it expires, but not this one.

        Raises:
            InvalidRequest: another buffer has the queue.
            Throttled: another buffer is being defined with it.
        """
        version = self._claim(queue, name)
        try:
            if owner := self._records.owner(queue, other_than=name):
                raise InvalidRequest(
                    f"queue {queue} belongs to buffer {owner}; give each buffer a queue of its own"
                )
            yield
        finally:
            self._ports.directory.delete(_NAMESPACE, queue, if_version=version)

    def _claim(self, queue: str, name: str) -> int:
        """Claim a queue, also over a claim of the same buffer.

        Returns:
            The version of the claim; whoever claims after that has another, and releases it.
        """
        version = 0
        until = self._ports.clock.now() // 1000 + GRAVE
        for _ in range(TRIES):
            record, wrote = self._ports.directory.put(
                _NAMESPACE, queue, {"buffer": name}, expires_at=until, if_version=version
            )
            version = 0 if record is None else record.version
            if wrote:
                return version
            if record is not None and record.value["buffer"] != name:
                raise Throttled(
                    f"buffer {record.value['buffer']} is being defined with queue {queue};"
                    " try again, or give each buffer a queue of its own",
                    retry_after=1,
                )
        raise contended(name)
