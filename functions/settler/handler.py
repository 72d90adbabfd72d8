"""Reads the stream of the words table: settles finished words again, in case their writer crashed."""

from collections.abc import Sequence
from typing import Any

from fanin.entry import streams, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return streams.consume(event, _heal, wiring.park, together=True)


def _heal(records: Sequence[streams.StreamRecord]) -> None:
    words = (streams.finished_word(record) for record in records)
    wiring.ledger().heal({word for word in words if word})
