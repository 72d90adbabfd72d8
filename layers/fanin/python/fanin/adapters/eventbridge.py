"""Events on an EventBridge bus."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from fanin.adapters.aws import client_factory, translated
from fanin.app.ports.events import Event
from fanin.errors import ServiceUnavailable, Throttled

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient


class EventBridgeEvents:
    """An ``Events`` on a bus.

    Args:
        bus: gives its name or ARN, at each call; what it raises is raised there.
        client: makes the client, when first used.
    """

    def __init__(self, bus: Callable[[], str], client: Callable[[], EventBridgeClient] | None = None) -> None:
        self._bus = bus
        self._make_client = client or client_factory("events")

    @cached_property
    def _client(self) -> EventBridgeClient:
        with translated():
            return self._make_client()

    def publish(self, event: Event) -> str:
        bus = self._bus()
        with translated():
            answer = self._client.put_events(
                Entries=[
                    {
                        "EventBusName": bus,
                        "Source": event.source,
                        "DetailType": event.detail_type,
                        "Detail": event.body,
                        "Time": datetime.fromtimestamp(event.time / 1000, UTC),
                    }
                ]
            )
        if answer["FailedEntryCount"]:
            code = answer["Entries"][0].get("ErrorCode", "")
            if "Throttl" in code:
                raise Throttled(f"the bus throttles ({code}); try again later", retry_after=1)
            raise ServiceUnavailable(f"the bus did not accept event {event.id} ({code}); try again")
        return answer["Entries"][0]["EventId"]
