"""The JSON form of what buffers are asked and answer, for both ends."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.domain.buffer import Accepted, Buffer, BufferPage, Level, Outcome, Released, Work
from fanin.wire.ledger import Json


def encode_buffer(buffer: Buffer) -> Json:
    return {
        "name": buffer.name,
        "limit": buffer.limit,
        "queue": buffer.queue,
        "owned": buffer.owned,
        "batch_id": buffer.batch_id,
    }


def decode_buffer(body: Json) -> Buffer:
    return Buffer(body["name"], body["limit"], body["queue"], body["owned"], body["batch_id"])


def encode_buffers(page: BufferPage) -> Json:
    return {"buffers": [encode_buffer(buffer) for buffer in page.buffers], "cursor": page.cursor}


def decode_buffers(body: Json) -> BufferPage:
    return BufferPage(tuple(decode_buffer(buffer) for buffer in body["buffers"]), body["cursor"])


def encode_level(level: Level) -> Json:
    """Write the buffer with how full it is beside it."""
    return encode_buffer(level.buffer) | {
        "count": level.count,
        "pending": level.pending,
        "taken": level.taken,
        "draining": level.draining,
    }


def decode_level(body: Json) -> Level:
    return Level(decode_buffer(body), body["count"], body["pending"], body["taken"], body["draining"])


def encode_accepted(accepted: Accepted) -> Json:
    return {"outcome": accepted.outcome.value, "items": list(accepted.items)}


def decode_accepted(body: Json) -> Accepted:
    return Accepted(Outcome(body["outcome"]), tuple(body["items"]))


def encode_work(work: Sequence[Work]) -> Json:
    return {
        "work": [{"payload": one.payload, "receipt": one.receipt, "waited_ms": one.waited_ms} for one in work]
    }


def decode_work(body: Json) -> list[Work]:
    return [Work(one["payload"], one["receipt"], one["waited_ms"]) for one in body["work"]]


def encode_released(released: Released) -> Json:
    return {"done": released.done, "late": released.late}


def decode_released(body: Json) -> Released:
    return Released(body["done"], body["late"])
