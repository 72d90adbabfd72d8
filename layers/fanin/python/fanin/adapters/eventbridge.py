"""Events on an EventBridge bus."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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

    The event's own id travels in its detail, since EventBridge gives every entry a new id.

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
        detail = {**event.detail, "id": event.id} if event.id else event.detail
        with translated():
            answer = self._client.put_events(
                Entries=[
                    {
                        "EventBusName": bus,
                        "Source": event.source,
                        "DetailType": event.detail_type,
                        "Detail": _json(detail),
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


def _json(detail: Mapping[str, object]) -> str:
    """Write a detail without ASCII escapes, which are longer: an entry may have 256 KB.

    Only half a surrogate pair stays escaped, since it cannot be sent otherwise.
    """
    text = json.dumps(detail, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace").decode()
