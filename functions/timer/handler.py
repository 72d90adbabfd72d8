"""EventBridge Scheduler calls this at the deadline of a batch: completes the batch, or times it out."""

from typing import Any

from fanin.entry import wiring
from fanin.entry.observe import logger, observed


@observed
def handler(event: dict[str, Any], context: Any) -> None:
    batch = wiring.ledger().meet_deadline(int(event["batch_id"]))
    if batch:
        logger.info("alarm", extra={"batch_id": batch.batch_id, "state": batch.state})
