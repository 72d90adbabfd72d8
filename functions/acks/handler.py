"""Reads the ack queue: a batch of messages becomes one acknowledgement, which writes each word once."""

from __future__ import annotations

from typing import Any

from fanin.entry import queues, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    received = wiring.received()
    return queues.acknowledge(event, wiring.ledger(), wiring.set_aside, received.postpone, received.put_back)
