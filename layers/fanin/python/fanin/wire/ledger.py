"""The JSON form of requests and answers, for both ends: the API and the queues, and the client.

Points in time are RFC 3339 strings in UTC with milliseconds, durations whole seconds, batch ids integers,
item ids strings. Half-open ranges are ``from`` … ``to``. A value that is not set is null in an answer, and
null or left out in a request.

``decode_*`` expects JSON of the right shape: the service checks requests against the schemas of
``fanin.entry.http.schemas`` first. What is not of that shape raises KeyError, TypeError or ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, Kind, Mode, OnDeadline, OpenBatch, State
from fanin.domain.ids import Group
from fanin.errors import InvalidRequest

Json: TypeAlias = dict[str, Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_TIME: Final = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"


def encode_time(ms: int) -> str:
    """Write milliseconds since the epoch as ``2026-11-21T09:40:00.123Z``."""
    moment = (_EPOCH + ms * _MILLISECOND).isoformat(timespec="milliseconds")
    return moment.removesuffix("+00:00") + "Z"


def decode_time(text: str) -> int:
    """Read an RFC 3339 timestamp, of any offset, as milliseconds since the epoch.

    Raises:
        InvalidRequest: it is none.
    """
    if re.fullmatch(_TIME, text, re.ASCII):
        try:
            return (datetime.fromisoformat(text.upper()) - _EPOCH) // _MILLISECOND
        except (ValueError, OverflowError):
            pass  # the form is right, the date is not: the thirtieth of February
    raise InvalidRequest(f"{text[:64]!r} is not an RFC 3339 timestamp such as 2026-11-21T09:40:00.123Z")


def _maybe_time(ms: int | None) -> str | None:
    return None if ms is None else encode_time(ms)


def _maybe_ms(text: str | None) -> int | None:
    return None if text is None else decode_time(text)


def encode_open(request: OpenBatch) -> Json:
    """Write the request to open a batch; what is left to the service is left out."""
    body = {
        "user_key": request.user_key,
        "mode": request.mode.value,
        "idle_ttl": request.idle_ttl,
        "lifetime": request.lifetime,
        "deadline": _maybe_time(request.deadline),
        "on_deadline": request.on_deadline.value,
        "limit": request.limit,
        "parent_item": request.parent_item,
        "metadata": dict(request.metadata),
    }
    return {name: value for name, value in body.items() if value is not None}


def decode_open(body: Json) -> OpenBatch:
    return OpenBatch(
        user_key=body.get("user_key", ""),
        mode=Mode(body.get("mode", Mode.EXACT)),
        idle_ttl=body.get("idle_ttl"),
        lifetime=body.get("lifetime"),
        deadline=_maybe_ms(body.get("deadline")),
        on_deadline=OnDeadline(body.get("on_deadline", OnDeadline.TIME_OUT)),
        limit=body.get("limit"),
        parent_item=body.get("parent_item"),
        metadata=body.get("metadata", {}),
    )


def encode_batch(batch: Batch) -> Json:
    """Write a batch as callers see it: without its salt and its bookkeeping."""
    return {
        "batch_id": batch.batch_id,
        "state": batch.state.value,
        "mode": batch.mode.value,
        "kind": batch.kind.value,
        "user_key": batch.user_key,
        "items": batch.items,
        "acked": batch.acked,
        "partial": batch.partial,
        "created_at": encode_time(batch.created_at),
        "touched_at": encode_time(batch.touched_at),
        "closed_at": _maybe_time(batch.closed_at),
        "ended_at": _maybe_time(batch.ended_at),
        "expires_at": encode_time(batch.expires_at * 1000),
        "open_idle_ttl": batch.open_idle_ttl,
        "closed_idle_ttl": batch.closed_idle_ttl,
        "deadline": _maybe_time(batch.deadline),
        "on_deadline": batch.on_deadline.value,
        "limit": batch.limit,
        "parent_item": batch.parent_item,
        "metadata": dict(batch.metadata),
    }


def decode_batch(body: Json) -> Batch:
    """Read a batch; its salt, which never leaves the service, is empty."""
    return Batch(
        batch_id=body["batch_id"],
        salt=b"",
        created_at=decode_time(body["created_at"]),
        touched_at=decode_time(body["touched_at"]),
        expires_at=decode_time(body["expires_at"]) // 1000,
        open_idle_ttl=body["open_idle_ttl"],
        closed_idle_ttl=body["closed_idle_ttl"],
        state=State(body["state"]),
        mode=Mode(body["mode"]),
        kind=Kind(body["kind"]),
        user_key=body["user_key"],
        items=body["items"],
        closed_at=_maybe_ms(body["closed_at"]),
        ended_at=_maybe_ms(body["ended_at"]),
        deadline=_maybe_ms(body["deadline"]),
        on_deadline=OnDeadline(body["on_deadline"]),
        limit=body["limit"],
        parent_item=body["parent_item"],
        metadata=body["metadata"],
        acked=body["acked"],
        partial=body["partial"],
    )


def encode_group(group: Group) -> Json:
    return {"batch_id": group.batch_id, "id": group.id, "upto": group.upto}


def decode_group(body: Json) -> Group:
    return Group(body["batch_id"], body["id"], body["upto"])


def encode_acks(acks: Acks) -> Json:
    """Write acknowledgements; empty parts are left out."""
    body: Json = {
        "items": list(acks.items),
        "ranges": [_encode_range(span) for span in acks.ranges],
        "counts": [{"batch_id": count.batch_id, "n": count.n} for count in acks.counts],
        "failures": [{"item": failure.item, "reason": failure.reason} for failure in acks.failures],
    }
    return {name: part for name, part in body.items() if part}


def _encode_range(span: ItemRange) -> Json:
    body: Json = {"group": span.group, "from": span.start}
    return body if span.stop is None else body | {"to": span.stop}


def decode_acks(body: Json) -> Acks:
    return Acks(
        items=body.get("items", ()),
        ranges=[ItemRange(r["group"], r.get("from", 0), r.get("to")) for r in body.get("ranges", ())],
        counts=[Count(c["batch_id"], c["n"]) for c in body.get("counts", ())],
        failures=[Failure(f["item"], f.get("reason", "")) for f in body.get("failures", ())],
    )


def encode_receipts(receipts: Sequence[Receipt]) -> Json:
    return {
        "batches": [
            {
                "batch_id": receipt.batch_id,
                "user_key": receipt.user_key,
                "state": receipt.state.value,
                "complete": receipt.complete,
                "first": receipt.first,
                "duplicates": list(receipt.duplicates),
                "ranged": receipt.ranged,
                "late": receipt.late,
            }
            for receipt in receipts
        ]
    }


def decode_receipts(body: Json) -> list[Receipt]:
    return [
        Receipt(
            batch_id=receipt["batch_id"],
            user_key=receipt["user_key"],
            state=State(receipt["state"]),
            complete=receipt["complete"],
            first=receipt["first"],
            duplicates=tuple(receipt["duplicates"]),
            ranged=receipt["ranged"],
            late=receipt["late"],
        )
        for receipt in body["batches"]
    ]
