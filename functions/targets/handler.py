"""Reads the queue of targets: tells each target the end of its batch, on its own."""

from functools import partial
from typing import Any

from fanin.app.targets.delivery import deliver
from fanin.entry import wiring
from fanin.entry.jobs import deliver_targets
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return deliver_targets(event, partial(deliver, wiring.ports()), wiring.received().postpone)
