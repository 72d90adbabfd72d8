"""A bounded buffer, which is a bounded batch with a queue: its requests and answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Whether a consumer was waiting for the work of a put."""

    WAITING = "waiting"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer as it was defined.

    Attributes:
        name: its name.
        limit: how many payloads may be pending, waiting or taken, at a time.
        queue: URL of its queue.
        owned: whether the service created the queue, and deletes it with the buffer.
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
        outcome: ``ready`` if a consumer was waiting for work, else ``waiting``.
        items: item ids of the payloads, in order.
    """

    outcome: Outcome
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """One payload, taken.

    Attributes:
        payload: as it was put.
        receipt: reports the work as done, and frees its slot.
        waited_ms: how long it was in the buffer.
    """

    payload: str
    receipt: str
    waited_ms: int


@dataclass(frozen=True, slots=True)
class Released:
    """The answer to done.

    Attributes:
        done: slots that this call freed.
        late: receipts whose work had been reported, or given up, before.
    """

    done: int
    late: int


@dataclass(frozen=True, slots=True)
class Level:
    """How full a buffer is.

    Attributes:
        buffer: the buffer.
        count: payloads that wait to be taken; if none do, minus the number of consumers waiting for work.
        pending: slots in use, exactly: payloads that wait, and payloads that were taken.
        taken: payloads that consumers have, as the queue counts them: approximately.
        draining: whether puts are rejected until all work is done, because the limit or the batch changes.
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
