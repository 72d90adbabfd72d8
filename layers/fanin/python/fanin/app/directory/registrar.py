"""The registrar: walks the directory, and drops those whose lease is over or whose queue is gone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Final

from fanin.app.directory.service import TOPIC_PREFIX, TOPICS, DirectoryService
from fanin.app.ports import Ports
from fanin.app.ports.records import Record
from fanin.domain.directory import Left, Registration
from fanin.errors import ChannelRefused, InvalidRequest

PAGE: Final = 1_000
"""Registrations that a run looks at before it notes its place: well within its time, a queue each."""
_NAMESPACE: Final = "registrar"
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run goes on.

    Attributes:
        topics: cursor of the list of topics, before the topic; None for its beginning.
        topic: name of the topic that was being looked at; empty if none was.
        rows: cursor within it.
    """

    topics: str | None = None
    topic: str = ""
    rows: str | None = None


@dataclass
class Registrar:
    """One run.

    It notes its place after each page, so that the next goes on there, whatever ended this one: its budget,
    its time, or a crash. A topic of any size is looked at in as many runs as it needs.

    Args:
        ports: the directory and the channels.
        budget: registrations to look at, rounded up to a page.
        turn_ms: time after which no further page is begun.
    """

    ports: Ports
    budget: int = 20_000
    turn_ms: int = 240_000
    _channels: dict[str, bool] = field(default_factory=dict)

    def sweep(self) -> Swept:
        """Look at registration after registration, from where the run before ended.

        Raises:
            Throttled: DynamoDB or SQS asked to slow down; the next run sees the rest.
        """
        total, stop = Swept(), self.ports.clock.now() + self.turn_ms
        place = self._place()
        while True:
            page = self.ports.directory.page(TOPICS, cursor=place.topics, limit=1)
            after = _Place(page.cursor)
            for topic in page.records:
                rows = place.rows if topic.name == place.topic else None
                total, rows = self._look(topic.name, rows, total)
                if rows is not None:
                    after = _Place(place.topics, topic.name, rows)
            place = after
            self._remember(place)
            if place == _Place():
                return total
            if total.seen >= self.budget or self.ports.clock.now() >= stop:
                return replace(total, more=True)

    def _look(self, topic: str, cursor: str | None, total: Swept) -> tuple[Swept, str | None]:
        """Look at one page of a topic."""
        directory = DirectoryService(self.ports)
        page = self.ports.directory.page(TOPIC_PREFIX + topic, cursor=cursor, limit=PAGE)
        for row in page.records:
            reason = self._fault(topic, row)
            dropped = reason is not None and directory.drop(topic, row, reason)
            total = replace(
                total,
                seen=total.seen + 1,
                over=total.over + (dropped and reason is Left.LEASE_OVER),
                gone=total.gone + (dropped and reason is Left.QUEUE_GONE),
            )
        return total, page.cursor

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

    def _place(self) -> _Place:
        found = self.ports.directory.read(_NAMESPACE, [_PLACE]).get(_PLACE)
        if found is None:
            return _Place()
        try:
            place = _Place(**found.value)
            self.ports.directory.page(TOPICS, cursor=place.topics, limit=1)
            if place.rows is not None:
                self.ports.directory.page(TOPIC_PREFIX + place.topic, cursor=place.rows, limit=1)
        except (InvalidRequest, TypeError):
            return _Place()  # of another version of fanin
        return place

    def _remember(self, place: _Place) -> None:
        until = self.ports.clock.now() // 1000 + _KEPT
        self.ports.directory.put(_NAMESPACE, _PLACE, asdict(place), expires_at=until)
