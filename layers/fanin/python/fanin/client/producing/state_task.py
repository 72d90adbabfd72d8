"""The fan-out of a state of Step Functions: its messages become a batch that wakes the state when it ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fanin.domain.batch import State

if TYPE_CHECKING:
    from fanin.client.tracker import Tracker


def fan_out(event: Mapping[str, Any], tracker: Tracker) -> dict[str, Any]:
    """Open a batch, send its messages, and close it.

    An invocation that is repeated has the same token, so it goes on with the same batch: each message keeps
    its item.

    Args:
        event: ``on_end``, ``queue_url`` and ``messages``, as the state gives them.
        tracker: opens and sends.

    Returns:
        The batch and how many messages were sent now.
    """
    token = json.dumps(event["on_end"], sort_keys=True)
    key = hashlib.sha256(token.encode()).hexdigest()
    sent = 0
    with tracker.batch(on_end=event["on_end"], key=key, on_error="leave") as batch:
        if batch.row.state is State.OPEN:
            sent = batch.send(event["queue_url"], event["messages"], key="messages")
    return {"batch_id": batch.id, "sent": sent}
