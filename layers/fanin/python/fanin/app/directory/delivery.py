"""Which registrations still wait for an event, since their queues were throttled when it was routed.

The event comes again as a whole. Without a note of who has it, every queue would get another copy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fanin.app.ports.records import Records
from fanin.domain import limits

MOST_WAITING: Final = 2_000
"""Names that fit into one record. If more queues are throttled at once, all get the event again."""
_KEPT: Final = 86_400
"""Seconds; EventBridge and Lambda give up an event after a day."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """How far an event of a route was delivered.

    Attributes:
        sent: messages that queues accepted.
        refused: messages that their queues will never accept.
        waiting: names of the registrations that still wait; None if nobody was tried yet.
    """

    sent: int = 0
    refused: int = 0
    waiting: Collection[str] | None = None

    @classmethod
    def of(cls, value: Mapping[str, Any] | None) -> Delivery:
        """The delivery that a record tells of; without a record, one that was not begun."""
        return cls() if value is None else cls(value["sent"], value["refused"], frozenset(value["to"]))

    def goes_to(self, name: str) -> bool:
        """Whether a registration is to get the event."""
        return self.waiting is None or name in self.waiting


def place(route: str, event_id: object) -> tuple[str, str] | None:
    """Namespace and name of the record for an event of a route; None for an event without an id."""
    if not isinstance(event_id, str) or not 0 < len(event_id) <= limits.MAX_NAME:
        return None
    return f"delivery/{event_id}", route


def keep(records: Records, where: tuple[str, str] | None, delivery: Delivery, now: int) -> None:
    """Note a delivery that was not finished.

    The write has no condition: if two runs route the same event at once and one note is lost, some queues
    get a copy more, which is allowed.

    Args:
        records: the directory.
        where: place of the record.
        delivery: how far the event was delivered.
        now: ms.
    """
    waiting = sorted(delivery.waiting or ())
    if where is None or len(waiting) > MOST_WAITING:
        return
    value = {"sent": delivery.sent, "refused": delivery.refused, "to": waiting}
    records.put(*where, value, expires_at=now // 1000 + _KEPT)
