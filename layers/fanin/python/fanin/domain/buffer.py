"""A bounded buffer, which is a bounded batch with a queue: its requests and answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fanin.domain import limits
from fanin.errors import InvalidRequest


class PutOutcome(StrEnum):
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

    outcome: PutOutcome
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
class FailedWork:
    """Work that its consumer gives up, so that it does not come again.

    Attributes:
        receipt: of the work.
        reason: why, for people; at most 1,024 characters.
    """

    receipt: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DoneWork:
    """Receipts of work that is done, and work that is given up."""

    tokens: Sequence[str]
    failures: Sequence[FailedWork] = ()


@dataclass(frozen=True, slots=True)
class Released:
    """The answer to done.

    Attributes:
        done: slots that this call freed, those of failed work included.
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
    """One page of buffers, by name.

    Attributes:
        buffers: the buffers.
        cursor: of the next page; None at the end.
        unreadable: names of buffers whose records cannot be read; only the service sees them.
    """

    buffers: tuple[Buffer, ...]
    cursor: str | None = None
    unreadable: tuple[str, ...] = ()


def check_put(payloads: Sequence[str]) -> None:
    """Refuse payloads that a queue can never take.

    Raises:
        InvalidRequest: there are no payloads, or one is empty, not text, or has a character that SQS refuses.
        RequestTooLarge: there are too many, or they have too many bytes together.
    """
    limits.at_most("payloads", payloads, limits.MAX_WORK)
    if not payloads:
        raise InvalidRequest("no payloads were given; put 1 to 10")
    for number, payload in enumerate(payloads):
        limits.text("a payload", payload, limits.MAX_PAYLOAD, least=1)
        limits.sendable(f"payload {number}", payload)
    limits.at_most("bytes of payloads", "".join(payloads).encode(), limits.MAX_PAYLOAD)
