"""How long a target has rest after a failed attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fanin.adapters.backoff import Backoff

PAUSES: Final = Backoff(base=20, cap=3_600)
"""Seconds until a job comes again, by how often it was received: up to an hour."""
LEAST_PAUSE: Final = 5


def pause(message: Mapping[str, Any], pauses: Backoff = PAUSES) -> int:
    """Seconds until a message comes again, drawn at random up to a bound that doubles each time."""
    received = int(message.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return int(pauses.delay(received - 1, at_least=LEAST_PAUSE))
