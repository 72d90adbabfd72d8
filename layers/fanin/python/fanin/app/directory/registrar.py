"""The registrar: walks the directory, and ends registrations whose lease is over or whose queue is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from fanin.app.directory.service import TOPIC_PREFIX, TOPICS, DirectoryService
from fanin.app.ports import Ports
from fanin.app.ports.records import Record
from fanin.domain.directory import Left, Registration
from fanin.errors import ChannelRefused, InvalidRequest

PAGE: Final = 1_000
"""How many registrations a run checks before it records its place; each may mean a call to SQS."""
_NAMESPACE: Final = "registrar"
_PLACE: Final = "place"
_KEPT: Final = 30 * 86_400  # seconds


@dataclass(frozen=True, slots=True)
class Swept:
    """What one run of the registrar did.

    Attributes:
        seen: registrations checked.
        over: ended, because their lease is over.
        gone: ended, because their queue is gone or has lost its tag.
        failed: pages and registrations that could not be checked. They are left as they are.
        more: whether the budget ended the run; the next run continues there.
    """

    seen: int = 0
    over: int = 0
    gone: int = 0
    failed: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run continues.

    Attributes:
        topics: cursor of the list of topics, before ``topic``; None for the beginning.
        topic: name of the topic being checked; empty between topics.
        rows: cursor within the topic.
        tried: name of the last registration behind ``rows`` that was checked; empty if none was.
    """

    topics: str | None = None
    topic: str = ""
    rows: str | None = None
    tried: str = ""


@dataclass
class Registrar:
    """One run.

    It records its place after each page and when its time is up, so that the next run continues there,
    whether the budget, the time or a crash ended this one. A large topic is checked in several runs. A
    registration that cannot be checked, for whatever reason, stays as it is and holds up no other, however
    many there are: only the budget and the time end a run.

    Args:
        ports: the directory and the channels.
        budget: how many registrations to check, rounded up to a page.
        turn_ms: milliseconds after which no further registration is checked. A run checks at least one.
        report: called for each failure, with the topic, or ``topic/name``, and the error. If many
            registrations share a queue that cannot be checked, it is called for the first of them.
    """

    ports: Ports
    budget: int = 20_000
    turn_ms: int = 240_000
    report: Callable[[str, Exception], None] = lambda _place, _error: None
    _channels: dict[str, bool | Exception] = field(default_factory=dict, init=False)
    _reported: set[Exception] = field(default_factory=set, init=False)

    def sweep(self) -> Swept:
        """Check one registration after another, from where the last run ended.

        Raises:
            Throttled: DynamoDB is overloaded; the next run checks the rest.
        """
        total, stop = Swept(), self.ports.clock.now() + self.turn_ms
        place = self._place()
        while True:
            page = self.ports.directory.page(TOPICS, cursor=place.topics, limit=1)
            after = _Place(page.cursor)
            for topic in page.records:
                begin = place if topic.name == place.topic else _Place(place.topics, topic.name)
                total, rest = self._check(begin, total, stop)
                after = rest or after
            place = after
            self._remember(place)
            if place == _Place():
                return total
            if total.seen >= self.budget or self.ports.clock.now() >= stop:
                return replace(total, more=True)

    def _check(self, place: _Place, total: Swept, stop: int) -> tuple[Swept, _Place | None]:
        """Check one page of a topic, or what is left of it, until the time is up.

        Returns:
            The total, and where the topic continues; None at its end.
        """
        try:
            page = self.ports.directory.page(TOPIC_PREFIX + place.topic, cursor=place.rows, limit=PAGE)
        except Exception as error:  # noqa: BLE001  the topics behind it must be checked all the same
            return self._failed(place.topic, error, total), None
        for row in page.records:
            if row.name <= place.tried:
                continue
            total = self._checked(place.topic, row, replace(total, seen=total.seen + 1))
            if self.ports.clock.now() >= stop:
                return total, replace(place, tried=row.name)
        rest = None if page.cursor is None else _Place(place.topics, place.topic, page.cursor)
        return total, rest

    def _checked(self, topic: str, row: Record, total: Swept) -> Swept:
        try:
            left = self._ended(topic, row)
        except Exception as error:  # noqa: BLE001  the others must be checked all the same
            return self._failed(f"{topic}/{row.name}", error, total)
        return replace(
            total,
            over=total.over + (left is Left.LEASE_OVER),
            gone=total.gone + (left is Left.QUEUE_GONE),
        )

    def _failed(self, place: str, error: Exception, total: Swept) -> Swept:
        if error not in self._reported:
            self._reported.add(error)
            self.report(place, error)
        return replace(total, failed=total.failed + 1)

    def _ended(self, topic: str, row: Record) -> Left | None:
        """End a registration if it has to; None if it stays, or has changed meanwhile."""
        reason = self._fault(topic, row)
        dropped = reason is not None and DirectoryService(self.ports).drop(topic, row, reason)
        return reason if dropped else None

    def _fault(self, topic: str, row: Record) -> Left | None:
        registration = Registration.of(topic, row.name, row.value, row.expires_at)
        if not registration.lives(self.ports.clock.now()):
            return Left.LEASE_OVER
        return None if self._is_usable(registration.channel) else Left.QUEUE_GONE

    def _is_usable(self, channel: str) -> bool:
        """Whether a queue exists and carries the tag; checked once for all registrations that share it.

        Raises:
            Exception: the check failed, now or for another registration of this run.
        """
        if channel not in self._channels:
            self._channels[channel] = self._looked(channel)
        found = self._channels[channel]
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found

    def _looked(self, channel: str) -> bool | Exception:
        try:
            self.ports.channels.resolve(channel, new=False)
        except ChannelRefused:
            return False
        except Exception as error:  # noqa: BLE001  whatever it is, all who share the queue get it
            return error
        return True

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
            return _Place()  # the row is damaged
        return place

    def _remember(self, place: _Place) -> None:
        until = self.ports.clock.now() // 1000 + _KEPT
        self.ports.directory.put(_NAMESPACE, _PLACE, asdict(place), expires_at=until)
