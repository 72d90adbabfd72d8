"""Reads the ack queue: a batch of messages becomes one request to mark items, which writes each word once."""

from typing import Any

from fanin.entry import queues, wiring
from fanin.entry.observe import observed
from fanin.entry.unhandled import respond


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    received = wiring.received()
    handled = queues.acknowledge(event["Records"], wiring.ledger())
    return respond(handled, wiring.set_aside, received.postpone, received.put_back)
