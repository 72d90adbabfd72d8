"""How long a message rests after a failed attempt: drawn at random, up to a bound that doubles each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fanin.adapters.backoff import Backoff

ACKS: Final = Backoff(base=20, cap=900)
"""Seconds until a message that overload left unmarked comes again: up to a quarter of an hour."""
TARGETS: Final = Backoff(base=20, cap=3_600)
"""Seconds until a target is told again: up to an hour."""
LEAST: Final = 5


def pause(message: Mapping[str, Any], pauses: Backoff) -> int:
    """Seconds until a message comes again, by how often it was received."""
    received = int(message.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return int(pauses.delay(received - 1, at_least=LEAST))
