"""Examples of the OpenAPI document; tests check each against its schema."""

from __future__ import annotations

from typing import Any, Final

_BATCH: Final = 243988644675881
_GROUP: Final = "00000000-0000-8000-820a-7e5724b523c0"
_ITEM: Final = f"{_BATCH}:{_GROUP}:0"
_QUEUE: Final = "https://sqs.eu-west-1.amazonaws.com/123456789012/rows"
_CARLYLE: Final = "00000000-0000-8000-8000-dde83cc8b529"

EXAMPLES: Final[dict[str, Any]] = {
    "OpenBatch": {"user_key": "catalog-42", "deadline": "2026-11-21T18:00:00Z", "totals": ["rows"]},
    "AddItems": {"count": 3},
    "Group": {"batch_id": _BATCH, "id": _GROUP, "upto": 3},
    "MarkItems": {
        "marks": [
            _ITEM,
            {"item": f"{_BATCH}:{_GROUP}:1", "totals": {"rows": 812}},
            {"failed": f"{_BATCH}:{_GROUP}:2", "reason": "no price"},
        ]
    },
    "Marked": {
        "batches": [
            {
                "batch_id": _BATCH,
                "user_key": "catalog-42",
                "state": "open",
                "complete": False,
                "first": 2,
                "failed": 0,
                "duplicates": [],
                "ranged": 0,
                "late": 0,
                "held": 0,
            }
        ],
        "refused": [
            {
                "place": 2,
                "code": "invalid-item-id",
                "detail": f"item id '{_BATCH}:{_GROUP}:2' is beyond its group",
            }
        ],
    },
    "Missing": {"ranges": [{"group": f"{_BATCH}:{_GROUP}", "from": 0, "to": 3}], "cursor": None},
    "Expired": {"batches": 2, "items": 4_000, "cursor": None},
    "Selection": {"errors": ["no price"], "ranges": [{"from": 0, "to": 1_000}]},
    "Redrive": {"errors": ["no price"], "dry_run": True},
    "SentItems": {"queue": _QUEUE, "from": 0, "to": 1_000},
    "NoteRetries": {"retries": [{"item": _ITEM, "attempt": 2, "error": "ConnectionError: no answer"}]},
    "DefineBuffer": {"limit": 500},
    "PutWork": {"payloads": ['{"scene": 12}']},
    "TakeWork": {"most": 10, "wait": 20},
    "DoneWork": {"receipts": [], "failures": []},
    "Register": {"channel": _QUEUE, "attributes": {"region": "eu"}, "lease": 300},
    "PutRoute": {"pattern": {"source": ["shop"], "detail-type": ["Order Placed"]}, "topic": "warehouses"},
    "PutEvent": {"source": "shop", "detail_type": "Order Placed", "detail": {"order": 7}},
    "EventSent": {"event_id": "11710aed-b79e-4468-a20b-bb3c0c3b4860", "correlation_id": "order-7"},
    "OpenFrame": {"size": 1_000, "source": "press", "destination": "archive", "ttl": 600},
    "ClaimEnvelopes": {"claims": [{"frame_id": _BATCH, "index": 0}], "lease": 30},
    "Scatter": {"body": "report!", "topic": "cars", "timeout": 60, "max_retries": 3},
    "ReplyList": {"replies": [{"item": _ITEM, "payload": {"km": 412}}]},
    "ClaimCheckRequest": {"item": _ITEM, "size": 5_000_000, "content_type": "application/json"},
    "CarlyleCreate": {"userKey": "catalog-42"},
    "CarlyleItems": {"batchId": _BATCH, "items": 3},
    "CarlyleAcks": {"batchItemIds": [_ITEM]},
    "CarlyleDecrements": {"acks": [{"batchId": _CARLYLE, "by": 2}]},
    "Problem": {
        "type": "urn:fanin:problem:batch-closed",
        "title": "Conflict",
        "status": 409,
        "detail": "batch 243988644675881 is closed: it takes no more items; open another",
        "request_id": "6cd7cf34-ea8f-47e9-b196-e819c2e6a576",
    },
}
"""Component → a value of it; each component that a request has as its body is here."""
