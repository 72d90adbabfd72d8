"""Reads the stream of the batches table: tells of batches and their ends, and forgets those removed."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from fanin.app.failures import forget
from fanin.entry import streams, wiring
from fanin.entry.observe import count_end, observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    announce = partial(_announce, again=streams.retried(event))
    return streams.consume(streams.ends_first(event), announce, wiring.park)


def _announce(records: Sequence[streams.StreamRecord], *, again: bool) -> None:
    for record in records:
        if batch := streams.ended_batch(record):
            wiring.ledger().announce(batch)
            count_end(batch)
        elif told := streams.told_batch(record):
            wiring.ledger().tell(*told, again=again)
        elif removed := streams.removed_batch(record):
            forget(wiring.ports(), removed)
