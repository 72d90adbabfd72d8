"""Reads the stream of the directory table: announces registrations, and creates the rules of routes."""

from collections.abc import Sequence
from typing import Any

from fanin.entry import streams, wiring
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return streams.consume(event, _follow, wiring.park)


def _follow(records: Sequence[streams.StreamRecord]) -> None:
    for record in records:
        streams.follow_directory(record, wiring.services())
