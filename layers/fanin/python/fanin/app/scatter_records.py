"""What a scatter keeps besides its bits: its plan, its message, its recipients, its replies.

All are records of its batch, written before the bits that stand for them. None of them says what was
replied: that is decided by the bits alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from fanin.app.ports import Records
from fanin.domain.batch import Batch
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import BatchNotFound

CHUNK: Final = 100
"""Recipients of one record, and of one job of the worker."""
REPLIES: Final = "reply/"
_PLAN: Final = "scatter"
_MESSAGE: Final = "message"


@dataclass(frozen=True, slots=True)
class Plan:
    """How a scatter goes on when replies come, or do not.

    Attributes:
        correlation_id: in every message and event of it.
        timeout: seconds until what is missing is sent again, or given up.
        max_retries: how often it is sent again.
        quorum: replies that are enough; None for all.
    """

    correlation_id: str
    timeout: int
    max_retries: int
    quorum: int | None


def chunks(recipients: int) -> range:
    """Numbers of the chunks of so many recipients."""
    return range(-(-recipients // CHUNK))


def put_plan(records: Records, batch: Batch, plan: Plan) -> bool:
    """Write the plan of a batch that is about to be opened; False if another scatter has drawn its id."""
    value = asdict(plan)
    room = str(batch.batch_id)
    record, written = records.put(room, _PLAN, value, expires_at=batch.expires_at, if_version=0)
    return written or (record is not None and record.value == value)


def put_sending(records: Records, batch: Batch, scatter: Scatter, recipients: Sequence[Recipient]) -> None:
    """Write the message and the recipients."""
    message = {"body": scatter.body, "type": scatter.type, "attributes": dict(scatter.attributes)}
    values: dict[str, Mapping[str, Any]] = {_MESSAGE: message}
    for chunk in chunks(len(recipients)):
        part = recipients[chunk * CHUNK : (chunk + 1) * CHUNK]
        values[_to(chunk)] = {"to": [[to.name, to.channel] for to in part]}
    records.put_all(str(batch.batch_id), values, expires_at=batch.expires_at)


def read_plan(records: Records, batch_id: int) -> Plan:
    """Read the plan.

    Raises:
        BatchNotFound: the batch is no scatter, or its records are past their time to live.
    """
    record = records.read(str(batch_id), [_PLAN]).get(_PLAN)
    if record is None:
        raise BatchNotFound(f"batch {batch_id} is no scatter; check the id")
    return Plan(**record.value)


def read_sending(records: Records, batch_id: int, chunk: int) -> tuple[Scatter, dict[int, Recipient]]:
    """Read the message, and a chunk's recipients by their numbers.

    Raises:
        BatchNotFound: the records are past their time to live.
    """
    read = records.read(str(batch_id), [_MESSAGE, _to(chunk)])
    if len(read) < 2:  # noqa: PLR2004
        raise BatchNotFound(f"chunk {chunk} of scatter {batch_id} is not there")
    return Scatter(**read[_MESSAGE].value), _recipients(chunk, read[_to(chunk)].value)


def read_names(records: Records, batch_id: int, ordinals: Collection[int]) -> dict[int, str]:
    """Read the names of recipients, by their numbers."""
    wanted = sorted({ordinal // CHUNK for ordinal in ordinals})
    read = records.read(str(batch_id), [_to(chunk) for chunk in wanted])
    found = {
        ordinal: to.name
        for chunk in wanted
        if _to(chunk) in read
        for ordinal, to in _recipients(chunk, read[_to(chunk)].value).items()
    }
    return {ordinal: found.get(ordinal, "") for ordinal in ordinals}


def reply_name(ordinal: int) -> str:
    """Name of a recipient's reply; names sort as the recipients do."""
    return f"{REPLIES}{ordinal:013}"


def ordinals_of(names: Iterable[str]) -> list[int]:
    """The recipients that names of replies stand for."""
    return [int(name.removeprefix(REPLIES)) for name in names]


def _to(chunk: int) -> str:
    return f"to/{chunk:06}"


def _recipients(chunk: int, value: Mapping[str, Any]) -> dict[int, Recipient]:
    return {chunk * CHUNK + i: Recipient(*to) for i, to in enumerate(value["to"])}
