"""The registrar: walks the directory, and drops those whose lease is over or whose queue is gone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from fanin.app import limits
from fanin.app.directory import ROOM, TOPICS, Directory
from fanin.app.ports import Ports, Record
from fanin.domain.directory import Left, Registration
from fanin.errors import ChannelRefused, InvalidRequest

_ROOM: Final = "registrar"
_PLACE: Final = "place"
_KEPT: Final = 30 * 86_400  # seconds


@dataclass(frozen=True, slots=True)
class Swept:
    """What one run did.

    Attributes:
        seen: registrations looked at.
        over: dropped, since their lease is over.
        gone: dropped, since their queue is gone or lost its tag.
        more: whether the run's budget ended it; the next goes on there.
    """

    seen: int = 0
    over: int = 0
    gone: int = 0
    more: bool = False


@dataclass
class Registrar:
    """One run.

    Args:
        ports: the directory and the channels.
        budget: registrations to look at, rounded up to a topic.
    """

    ports: Ports
    budget: int = 20_000
    _channels: dict[str, bool] = field(default_factory=dict)

    def sweep(self) -> Swept:
        """Look at topic after topic, from where the run before ended.

        Raises:
            Throttled: DynamoDB or SQS asked to slow down; the next run sees the rest.
        """
        total = Swept()
        cursor = self._place()
        while True:
            page = self.ports.directory.page(TOPICS, cursor=cursor, limit=1)
            for topic in page.records:
                total = self._sweep(topic.name, total)
            cursor = page.cursor
            if cursor is None or total.seen >= self.budget:
                self._remember(cursor)
                return replace(total, more=cursor is not None)

    def _sweep(self, topic: str, total: Swept) -> Swept:
        directory = Directory(self.ports)
        cursor: str | None = None
        while True:
            page = self.ports.directory.page(ROOM + topic, cursor=cursor, limit=limits.MAX_PAGE)
            for row in page.records:
                reason = self._fault(topic, row)
                dropped = reason is not None and directory.drop(topic, row, reason)
                total = replace(
                    total,
                    seen=total.seen + 1,
                    over=total.over + (dropped and reason is Left.LEASE_OVER),
                    gone=total.gone + (dropped and reason is Left.QUEUE_GONE),
                )
            cursor = page.cursor
            if cursor is None:
                return total

    def _fault(self, topic: str, row: Record) -> Left | None:
        registration = Registration.of(topic, row.name, row.value, row.expires_at)
        if not registration.lives(self.ports.clock.now()):
            return Left.LEASE_OVER
        return None if self._is_there(registration.channel) else Left.QUEUE_GONE

    def _is_there(self, channel: str) -> bool:
        """Whether a queue is there and carries the tag; asked once for all that share it."""
        if channel not in self._channels:
            try:
                self.ports.channels.resolve(channel)
            except ChannelRefused:
                self._channels[channel] = False
            else:
                self._channels[channel] = True
        return self._channels[channel]

    def _place(self) -> str | None:
        found = self.ports.directory.read(_ROOM, [_PLACE]).get(_PLACE)
        cursor = found.value["cursor"] if found else None
        try:
            self.ports.directory.page(TOPICS, cursor=cursor, limit=1)
        except InvalidRequest:
            return None  # of another version of fanin
        return cursor

    def _remember(self, cursor: str | None) -> None:
        until = self.ports.clock.now() // 1000 + _KEPT
        self.ports.directory.put(_ROOM, _PLACE, {"cursor": cursor}, expires_at=until)
