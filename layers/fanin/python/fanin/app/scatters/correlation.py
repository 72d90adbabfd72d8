"""Correlation ids: each belongs to one scatter that has not ended.

A record of the directory table says which batch holds an id. It counts only while that batch lives. So a
process that dies before it opens its batch, or before it frees the id, does not block the id for long.
"""

import hashlib
from uuid import UUID

from fanin.app.ports import Ports
from fanin.app.ports.records import Record
from fanin.domain.batch import Batch
from fanin.errors import CorrelationIdAlive, Throttled

NAMESPACE = "correlation"
GRACE_MS = 60_000
"""Milliseconds that a process may take from claiming an id to opening its batch."""
TRIES = 5


def derived_from(batch: Batch) -> str:
    """The id of a scatter whose caller did not choose one.

    It is derived from the batch's salt, without revealing it, so every process that works on the same start
    derives the same id.
    """
    return str(UUID(bytes=hashlib.blake2b(batch.salt, digest_size=16, person=b"correlation").digest()))


def claim(ports: Ports, correlation_id: str, batch: Batch) -> int:
    """Claim an id for a batch that is about to be opened; claiming it again is fine.

    A claim that is long past without its batch being open is renewed, since it may have passed to another.

    Returns:
        Since when the batch holds the id, ms; see ``check_in_time``.

    Raises:
        CorrelationIdAlive: a scatter that has not ended holds the id.
        Throttled: other processes are claiming the id at this moment.
    """
    version = 0
    for _ in range(TRIES):
        now = ports.clock.now()
        value = {"batch_id": batch.batch_id, "created_at": now, "owner": derived_from(batch)}
        place, until = (NAMESPACE, correlation_id), batch.expires_at
        held, taken = ports.directory.put(*place, value, expires_at=until, if_version=version)
        if taken:
            return now
        if held is not None and _is_of(held, batch):
            if _in_time(ports, since := int(held.value["created_at"])):
                return since
        elif held is not None and _alive(ports, held):
            raise _alive_error(held, correlation_id)
        version = 0 if held is None else held.version
    raise Throttled(f"other calls are claiming correlation id {correlation_id!r}; try again", retry_after=1)


def check_in_time(ports: Ports, since: int) -> None:
    """Refuse to open a batch so late that another may have claimed its correlation id.

    Args:
        ports: the clock.
        since: as ``claim`` returned it.

    Raises:
        Throttled: writing the scatter's records took too long.
    """
    if not _in_time(ports, since):
        raise Throttled("writing the recipients took too long; try again", retry_after=1)


def check_held(ports: Ports, correlation_id: str, batch: Batch) -> None:
    """Refuse a batch that was opened so late that another scatter has taken its correlation id.

    A process may pause for long between its last look at the clock and the write that opens its batch.

    Raises:
        CorrelationIdAlive: another scatter holds the id.
    """
    held = ports.directory.read(NAMESPACE, [correlation_id]).get(correlation_id)
    if held is not None and not _is_of(held, batch):
        raise _alive_error(held, correlation_id)


def free(ports: Ports, correlation_id: str, batch_id: int) -> None:
    """Free an id, if the batch still holds it."""
    held = ports.directory.read(NAMESPACE, [correlation_id]).get(correlation_id)
    if held is not None and held.value["batch_id"] == batch_id:
        ports.directory.delete(NAMESPACE, correlation_id, if_version=held.version)


def _is_of(held: Record, batch: Batch) -> bool:
    """Whether a batch holds the id, and not another one that drew the same batch id."""
    return bool(held.value["batch_id"] == batch.batch_id and held.value["owner"] == derived_from(batch))


def _alive_error(held: Record, correlation_id: str) -> CorrelationIdAlive:
    return CorrelationIdAlive(
        f"scatter {held.value['batch_id']} of correlation id {correlation_id!r} has not ended;"
        " wait for it, cancel it, or use another"
    )


def _in_time(ports: Ports, since: int) -> bool:
    return ports.clock.now() < since + GRACE_MS // 2


def _alive(ports: Ports, held: Record) -> bool:
    now = ports.clock.now()
    batch_id = held.value["batch_id"]
    row = ports.batches.read([batch_id]).get(batch_id)
    if row is None:
        return now < int(held.value["created_at"]) + GRACE_MS
    return not row.state.terminal and not row.gone(now)
