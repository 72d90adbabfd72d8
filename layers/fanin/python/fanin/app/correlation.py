"""Correlation ids: each belongs to one living scatter.

Who holds an id is a record of the directory table. It counts only while the batch that it names lives, so
a holder who never came to open its batch, or to let go, keeps the id from nobody for long.
"""

from __future__ import annotations

from typing import Final

from fanin.app.ports import Ports, Record
from fanin.domain.batch import Batch
from fanin.errors import CorrelationIdAlive, Throttled

ROOM: Final = "correlation"
GRACE_MS: Final = 60_000
"""How long a holder may take from claiming the id to opening its batch."""
TRIES: Final = 5


def claim(ports: Ports, correlation_id: str, batch: Batch) -> None:
    """Take an id for a batch that is about to be opened; taking it again is no error.

    Raises:
        CorrelationIdAlive: a scatter that has not ended holds it.
        Throttled: others are taking it right now.
    """
    value = {"batch_id": batch.batch_id, "created_at": batch.created_at}
    version = 0
    for _ in range(TRIES):
        held, taken = ports.directory.put(
            ROOM, correlation_id, value, expires_at=batch.expires_at, if_version=version
        )
        if taken or (held is not None and held.value["batch_id"] == batch.batch_id):
            return
        if held is not None and _alive(ports, held):
            raise CorrelationIdAlive(
                f"scatter {held.value['batch_id']} of correlation id {correlation_id!r} has not ended;"
                " wait for it, cancel it, or use another"
            )
        version = 0 if held is None else held.version
    raise Throttled(f"others are taking correlation id {correlation_id!r}; try again", retry_after=1)


def check_in_time(ports: Ports, batch: Batch) -> None:
    """Refuse to open a batch so late that its id may have been given to another.

    Raises:
        Throttled: it took too long to write what belongs to it.
    """
    if ports.clock.now() >= batch.created_at + GRACE_MS // 2:
        raise Throttled("writing the recipients took too long; try again", retry_after=1)


def free(ports: Ports, correlation_id: str, batch_id: int) -> None:
    """Let go of an id, if the batch still holds it."""
    held = ports.directory.read(ROOM, [correlation_id]).get(correlation_id)
    if held is not None and held.value["batch_id"] == batch_id:
        ports.directory.delete(ROOM, correlation_id, if_version=held.version)


def _alive(ports: Ports, held: Record) -> bool:
    now = ports.clock.now()
    batch_id = held.value["batch_id"]
    row = ports.batches.read([batch_id]).get(batch_id)
    if row is None:
        return now < int(held.value["created_at"]) + GRACE_MS
    return not row.state.terminal and not row.gone(now)
