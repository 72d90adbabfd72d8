"""Reads the dead-letter queues of tracked queues: fails the items of the messages, so that batches end."""

from __future__ import annotations

from typing import Any

from fanin.entry import queues, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return queues.fail_dead_letters(event, wiring.ledger(), wiring.set_aside, wiring.received().postpone)
