"""Which batches a fan-out can fill."""

from __future__ import annotations

from fanin.domain.batch import Kind, Mode, OpenBatch
from fanin.errors import InvalidRequest


def check_request(request: OpenBatch) -> None:
    """Refuse a batch that a fan-out cannot fill.

    Raises:
        InvalidRequest: it has a limit, is estimated, or belongs to one of fanin's patterns. Says what to do.
    """
    if request.limit is not None:
        raise InvalidRequest(
            "a fan-out on Spark cannot have a limit: it adds all items before its tasks send, and tasks that"
            " wait for consumers would hold executors idle. Leave limit out, or send with Tracker.batch,"
            " which waits while the batch is full"
        )
    if request.mode is not Mode.EXACT:
        raise InvalidRequest(
            f"a fan-out on Spark cannot have the mode {request.mode.value}: such a batch has no item ids, and"
            " a task that is retried would have its messages counted twice. Leave mode out"
        )
    if request.kind is not Kind.BATCH or request.size is not None:
        raise InvalidRequest(
            "a fan-out opens a plain batch and counts its items itself; leave kind and size out"
        )
