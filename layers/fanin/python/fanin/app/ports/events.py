"""The event bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from fanin import names


class Event(NamedTuple):
    """An event for the bus.

    Attributes:
        id: deterministic, such as ``<batch>.<state>``, so that a consumer can drop a repeat; empty for
            events of other sources.
        detail_type: such as ``Batch Completed``.
        detail: JSON object.
        time: when it happened, ms since the epoch.
        source: who publishes it.
    """

    id: str
    detail_type: str
    detail: Mapping[str, object]
    time: int
    source: str = names.EVENT_SOURCE


class Events(Protocol):
    """The bus."""

    def publish(self, event: Event) -> str:
        """Put one event on the bus, and return the id that the bus gave it.

        Raises:
            Throttled, ServiceUnavailable: the bus did not take it.
        """
        ...
