"""Reads the stream of the batches table: tells of batches and their ends, and forgets those removed."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from fanin.entry import streams, wiring
from fanin.entry.observe import count_end, observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    follow = partial(_follow, again=streams.retried(event))
    return streams.consume(streams.ends_first(event), follow, wiring.park)


def _follow(records: Sequence[streams.StreamRecord], *, again: bool) -> None:
    for record in records:
        if ended := wiring.ledger().follow(*streams.changed_batch(record), again=again):
            count_end(ended)
