"""The JSON form of scatters and replies; see ``fanin.wire.ledger``."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.domain.batch import State
from fanin.domain.scatter import (
    CONTENT_TYPE,
    MAX_RETRIES,
    TIMEOUT,
    ClaimCheck,
    ClaimCheckRequest,
    Gathered,
    GatheredReply,
    Recipient,
    Reply,
    ReplyReceipt,
    Scatter,
    Scattered,
)
from fanin.wire.ledger import Json, decode_batch, decode_time, encode_batch, encode_time


def encode_scatter(scatter: Scatter) -> Json:
    """Write the request to scatter; what is not set is left out."""
    body = {
        "body": scatter.body,
        "recipients": [{"name": to.name, "channel": to.channel} for to in scatter.recipients]
        if scatter.topic is None
        else None,
        "topic": scatter.topic,
        "where": dict(scatter.where) or None,
        "type": scatter.type,
        "attributes": dict(scatter.attributes),
        "correlation_id": scatter.correlation_id,
        "timeout": scatter.timeout,
        "max_retries": scatter.max_retries,
        "quorum": scatter.quorum,
        "user_key": scatter.user_key,
        "metadata": dict(scatter.metadata),
    }
    return {name: value for name, value in body.items() if value is not None}


def decode_scatter(body: Json) -> Scatter:
    return Scatter(
        body=body["body"],
        recipients=tuple(Recipient(to.get("name", ""), to["channel"]) for to in body.get("recipients") or ()),
        topic=body.get("topic"),
        where=body.get("where") or {},
        type=body.get("type", ""),
        attributes=body.get("attributes", {}),
        correlation_id=body.get("correlation_id"),
        timeout=body.get("timeout", TIMEOUT),
        max_retries=body.get("max_retries", MAX_RETRIES),
        quorum=body.get("quorum"),
        user_key=body.get("user_key", ""),
        metadata=body.get("metadata", {}),
    )


def encode_scattered(scattered: Scattered) -> Json:
    """Write a scatter; what can be computed of it is there too, for readers without the library."""
    return {
        "batch": encode_batch(scattered.batch),
        "correlation_id": scattered.correlation_id,
        "starting": scattered.starting,
        "ready": scattered.ready,
        "recipients": scattered.batch.items,
        "received": scattered.received,
        "failed": scattered.failed,
        "missing": scattered.missing,
        "retries": scattered.retries,
        "max_retries": scattered.max_retries,
        "quorum": scattered.quorum,
    }


def decode_scattered(body: Json) -> Scattered:
    return Scattered(
        batch=decode_batch(body["batch"]),
        correlation_id=body["correlation_id"],
        received=body["received"],
        failed=body["failed"],
        retries=body["retries"],
        max_retries=body["max_retries"],
        quorum=body["quorum"],
    )


def encode_replies(replies: Sequence[Reply]) -> Json:
    """Write replies: the body of the request and of a message to the reply queue."""
    return {"replies": [_encode_reply(reply) for reply in replies]}


def _encode_reply(reply: Reply) -> Json:
    if reply.claim is not None:
        return {"item": reply.item, "claim": reply.claim}
    return {"item": reply.item, "payload": reply.payload}


def decode_replies(body: Json) -> list[Reply]:
    return [Reply(reply["item"], reply.get("payload"), reply.get("claim")) for reply in body["replies"]]


def encode_reply_receipts(receipts: Sequence[ReplyReceipt]) -> Json:
    return {
        "replies": [
            {
                "item": receipt.item,
                "batch_id": receipt.batch_id,
                "state": receipt.state.value,
                "first": receipt.first,
                "duplicate": receipt.duplicate,
                "different": receipt.different,
                "late": receipt.late,
            }
            for receipt in receipts
        ]
    }


def decode_reply_receipts(body: Json) -> list[ReplyReceipt]:
    return [
        ReplyReceipt(
            item=receipt["item"],
            batch_id=receipt["batch_id"],
            state=State(receipt["state"]),
            first=receipt["first"],
            different=receipt["different"],
            late=receipt["late"],
        )
        for receipt in body["replies"]
    ]


def encode_gathered(page: Gathered) -> Json:
    replies = [
        {
            "ordinal": reply.ordinal,
            "name": reply.name,
            "replied_at": encode_time(reply.replied_at),
            "payload": reply.payload,
            "claim": reply.claim,
            "url": reply.url,
        }
        for reply in page.replies
    ]
    return {"replies": replies, "cursor": page.cursor}


def decode_gathered(body: Json) -> Gathered:
    replies = tuple(
        GatheredReply(
            ordinal=reply["ordinal"],
            name=reply["name"],
            replied_at=decode_time(reply["replied_at"]),
            payload=reply["payload"],
            claim=reply["claim"],
            url=reply["url"],
        )
        for reply in body["replies"]
    )
    return Gathered(replies, body["cursor"])


def encode_claim_check_request(request: ClaimCheckRequest) -> Json:
    return {"item": request.item, "size": request.size, "content_type": request.content_type}


def decode_claim_check_request(body: Json) -> ClaimCheckRequest:
    return ClaimCheckRequest(body["item"], body["size"], body.get("content_type", CONTENT_TYPE))


def encode_claim_check(claim: ClaimCheck) -> Json:
    return {
        "key": claim.key,
        "url": claim.url,
        "headers": dict(claim.headers),
        "expires_at": encode_time(claim.expires_at),
    }


def decode_claim_check(body: Json) -> ClaimCheck:
    return ClaimCheck(body["key"], body["url"], body["headers"], decode_time(body["expires_at"]))
