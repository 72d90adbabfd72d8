"""The ack queue: a window of messages becomes one acknowledgement, so each word is written once for all."""

from __future__ import annotations

from typing import Any

from fanin.entry import queues, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return queues.acknowledge(event, wiring.ledger())
