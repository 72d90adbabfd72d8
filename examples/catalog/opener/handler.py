"""Opens the batch of an import for a state that waits for its end; the producer finds it by its user key."""

import hashlib
import json
from typing import Any

from fanin import Tracker

tracker = Tracker.from_env()


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    waiting = json.dumps(event["on_end"], sort_keys=True)
    key = hashlib.sha256(waiting.encode()).hexdigest()  # Lambda may repeat the invocation
    batch = tracker.open(
        user_key=event["input"]["user_key"], totals=["bytes", "hubs"], on_end=event["on_end"], key=key
    )
    return {"batch_id": batch.batch_id}
