"""A bounded buffer: a bounded batch with a queue; what is asked of it and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of a put that was not rejected."""

    WAITING = "waiting"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer as it was defined.

    Attributes:
        name: its name.
        limit: most work that may be pending, waiting or taken, at a time.
        queue: URL of its queue.
        owned: whether the service made the queue, and deletes it with the buffer.
        batch_id: the batch whose pending items are the slots in use.
    """

    name: str
    limit: int
    queue: str
    owned: bool
    batch_id: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer to a put.

    Attributes:
        outcome: ``ready`` if a consumer was waiting already, else ``waiting``.
        items: item ids of the payloads, in order.
    """

    outcome: Outcome
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """One payload, taken.

    Attributes:
        payload: as it was put.
        receipt: gives its slot back, with ``done``.
        waited_ms: how long it was in the buffer.
    """

    payload: str
    receipt: str
    waited_ms: int


@dataclass(frozen=True, slots=True)
class Released:
    """The answer to done.

    Attributes:
        done: slots that this call gave back.
        late: receipts whose work was done, or given up, before.
    """

    done: int
    late: int


@dataclass(frozen=True, slots=True)
class Level:
    """How full a buffer is.

    Attributes:
        buffer: the buffer.
        count: work that waits; below zero when there is none and so many consumers wait for it.
        pending: slots in use, exactly: work that waits and work that was taken.
        taken: work that consumers have, as the queue counts it: approximately.
        draining: no put is accepted until all is done, since its batch or its limit is being changed.
    """

    buffer: Buffer
    count: int
    pending: int
    taken: int
    draining: bool


@dataclass(frozen=True, slots=True)
class BufferPage:
    """One page of buffers, by name."""

    buffers: tuple[Buffer, ...]
    cursor: str | None = None
