"""The records of a scatter: its plan, its message, its recipients, its replies.

They are records of its batch, written before the bits that stand for them. The bits alone decide which
replies count.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final, Self

from fanin.app.ports.records import Record, Records
from fanin.domain import limits
from fanin.domain.batch import Batch
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import BatchNotFound

CHUNK: Final = 100
"""How many recipients one record has, and one job of the worker."""
_PLAN: Final = "scatter"
_MESSAGE: Final = "message"
_SENT: Final = "sent"


@dataclass(frozen=True, slots=True)
class ScatterPlan:
    """How a scatter proceeds when replies arrive, or do not.

    Attributes:
        correlation_id: in every message and event of it.
        timeout: seconds until the message is sent again to those who have not replied, or they are given up.
        max_retries: how often the message is sent again.
        quorum: how many replies are enough, as requested: a number or a share; None for all.
    """

    correlation_id: str
    timeout: int
    max_retries: int
    quorum: int | float | None

    def enough(self, recipients: int) -> int | None:
        """How many replies are enough with this many recipients; a share is rounded up. None for all."""
        if isinstance(self.quorum, float):
            return math.ceil(Fraction(str(self.quorum)) * recipients)
        return None if self.quorum is None else min(self.quorum, recipients)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive recipients, as one record holds them.

    Attributes:
        recipients: at most ``CHUNK``.
        page: cursor of the topic's page that has the last of them; None for the first page.
        end: whether they are the last of the topic.
    """

    recipients: tuple[Recipient, ...]
    page: str | None = None
    end: bool = False

    @property
    def value(self) -> dict[str, Any]:
        return {"to": [[to.name, to.channel] for to in self.recipients], "page": self.page, "end": self.end}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        recipients = tuple(Recipient(*to) for to in value["to"])
        return cls(recipients, value["page"], value["end"])


def chunks(recipients: int) -> range:
    """Numbers of the chunks for this many recipients."""
    return range(-(-recipients // CHUNK))


def chunk_of(ordinal: int) -> int:
    """Number of the chunk that holds a recipient."""
    return ordinal // CHUNK


def span(chunk: int) -> range:
    """The ordinals that a chunk can hold."""
    return range(chunk * CHUNK, (chunk + 1) * CHUNK)


def job(batch: Batch, chunk: int | None = None, wave: int = 0) -> dict[str, object]:
    """A job for the worker: to send to the recipients of a chunk, or without a chunk to list recipients."""
    return {"batch_id": batch.batch_id, "chunk": chunk, "wave": wave}


def put_plan(records: Records, batch: Batch, plan: ScatterPlan) -> bool:
    """Write the plan of a batch that is about to be opened; False if another scatter drew the same id."""
    value = asdict(plan)
    record, written = _put(records, batch, _PLAN, value)
    return written or (record is not None and record.value == value)


def put_message(records: Records, batch: Batch, scatter: Scatter) -> None:
    """Write the message, and the topic whose recipients are still to be listed, if any."""
    said = {"body": scatter.body, "type": scatter.type, "attributes": dict(scatter.attributes)}
    message = {**said, "topic": scatter.topic, "where": dict(scatter.where)}
    records.put_all(str(batch.batch_id), {_MESSAGE: message}, expires_at=batch.expires_at)


def put_recipients(records: Records, batch: Batch, recipients: Sequence[Recipient]) -> None:
    """Write recipients that are known from the start."""
    parts = enumerate(limits.chunks(recipients, max_items=CHUNK))
    found = {_to(number): Chunk(tuple(part)).value for number, part in parts}
    records.put_all(str(batch.batch_id), found, expires_at=batch.expires_at)


def put_chunk(records: Records, batch: Batch, number: int, chunk: Chunk) -> tuple[Chunk, bool]:
    """Write a chunk, unless it is written already.

    Returns:
        The chunk as it is stored now, and whether this call wrote it.
    """
    record, written = _put(records, batch, _to(number), chunk.value)
    if record is None:
        raise _lost(batch.batch_id, number)
    return Chunk.of(record.value), written


def read_chunk(records: Records, batch: Batch, number: int) -> Chunk | None:
    """Read a chunk; None if it is not written yet."""
    record = records.read(str(batch.batch_id), [_to(number)]).get(_to(number))
    return None if record is None else Chunk.of(record.value)


def read_plan(records: Records, batch_id: int) -> ScatterPlan:
    """Read the plan.

    Raises:
        BatchNotFound: the batch is not a scatter, or its records are past their time to live.
    """
    record = records.read(str(batch_id), [_PLAN]).get(_PLAN)
    if record is None:
        raise BatchNotFound(f"batch {batch_id} is not a scatter; check the id")
    return ScatterPlan(**record.value)


def read_message(records: Records, batch_id: int) -> Scatter:
    """Read the message.

    Raises:
        BatchNotFound: the message is past its time to live.
    """
    record = records.read(str(batch_id), [_MESSAGE]).get(_MESSAGE)
    if record is None:
        raise BatchNotFound(f"the message of scatter {batch_id} is past its time to live")
    return Scatter(**record.value)


def read_sending(
    records: Records, batch_id: int, chunk: int, wave: int
) -> tuple[Scatter, dict[int, Recipient]]:
    """Read the message, and by their ordinals the recipients of a chunk to which to send it.

    If ``put_waiting`` recorded who waits for the message of this wave, these are only they.

    Raises:
        BatchNotFound: the records are past their time to live.
    """
    note = _waiting(chunk, wave)
    read = records.read(str(batch_id), [_MESSAGE, _to(chunk), note])
    if _MESSAGE not in read or _to(chunk) not in read:
        raise _lost(batch_id, chunk)
    recipients = _numbered(chunk, read[_to(chunk)].value)
    if note in read:
        recipients = {n: recipients[n] for n in read[note].value["to"]}
    return Scatter(**read[_MESSAGE].value), recipients


def put_waiting(records: Records, batch: Batch, chunk: int, wave: int, ordinals: Collection[int]) -> None:
    """Record which recipients of a chunk wait for the message of a wave, since their queues were busy.

    The job comes again, for them alone. Whichever of two runs of a job writes last: all others have got the
    message from that run, or from one before it.
    """
    _put(records, batch, _waiting(chunk, wave), {"to": sorted(ordinals)}, over=None)


def read_names(records: Records, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
    """Read the names of recipients, by their ordinals."""
    wanted = {_to(chunk): chunk for chunk in sorted({chunk_of(ordinal) for ordinal in ordinals})}
    found: dict[int, Recipient] = {}
    for name, record in records.read(str(batch_id), wanted).items():
        found |= _numbered(wanted[name], record.value)
    return {ordinal: found[ordinal].name if ordinal in found else "" for ordinal in ordinals}


def put_sent(records: Records, batch: Batch) -> None:
    """Record that the jobs for all recipients were queued."""
    _put(records, batch, _SENT, {}, over=None)


def was_sent(records: Records, batch: Batch) -> bool:
    """Whether ``put_sent`` recorded it."""
    return bool(records.read(str(batch.batch_id), [_SENT]))


def reply_name(ordinal: int) -> str:
    """Name of a recipient's reply; names sort like ordinals."""
    return f"reply/{ordinal:013}"


def _put(
    records: Records, batch: Batch, name: str, value: Mapping[str, Any], *, over: int | None = 0
) -> tuple[Record | None, bool]:
    """Write a record over a version: by default if there is none, and in any case over None."""
    return records.put(str(batch.batch_id), name, value, expires_at=batch.expires_at, if_version=over)


def _to(chunk: int) -> str:
    return f"to/{chunk:06}"


def _waiting(chunk: int, wave: int) -> str:
    return f"waiting/{wave:02}/{chunk:06}"


def _numbered(chunk: int, value: Mapping[str, Any]) -> dict[int, Recipient]:
    return dict(zip(span(chunk), Chunk.of(value).recipients, strict=False))


def _lost(batch_id: int, chunk: int) -> BatchNotFound:
    return BatchNotFound(f"chunk {chunk} of scatter {batch_id} is past its time to live")
