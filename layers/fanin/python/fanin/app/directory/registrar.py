"""The registrar: walks the directory, and ends registrations whose lease is over or whose queue is gone."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from fanin.app.directory.service import TOPIC_PREFIX, TOPICS, DirectoryService
from fanin.app.ports import Ports
from fanin.app.ports.records import Record
from fanin.domain.directory import Left, Registration
from fanin.errors import ChannelRefused, InvalidRequest

PAGE = 1_000
"""How many registrations a run checks before it records its place; each may mean a call to SQS."""
_NAMESPACE = "registrar"
_PLACE = "place"
_KEPT = 30 * 86_400  # seconds


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
    _counts: Counter[str] = field(default_factory=Counter, init=False)

    def sweep(self) -> Swept:
        """Check one registration after another, from where the last run ended.

        Raises:
            Throttled: DynamoDB is overloaded; the next run checks the rest.
        """
        now = self.ports.clock.now
        place, stop = self._place(), now() + self.turn_ms
        while True:
            page = self.ports.directory.page(TOPICS, cursor=place.topics, limit=1)
            after = _Place(page.cursor)
            for topic in page.records:
                begin = place if topic.name == place.topic else _Place(place.topics, topic.name)
                after = self._check(begin, stop) or after
            place, until = after, now() // 1000 + _KEPT
            self.ports.directory.put(_NAMESPACE, _PLACE, asdict(place), expires_at=until)
            more = place != _Place()
            if not more or self._counts["seen"] >= self.budget or now() >= stop:
                return Swept(**self._counts, more=more)

    def _check(self, place: _Place, stop: int) -> _Place | None:
        """Check one page of a topic, or what is left of it, until the time is up.

        Returns:
            Where the topic continues; None at its end.
        """
        try:
            page = self.ports.directory.page(TOPIC_PREFIX + place.topic, cursor=place.rows, limit=PAGE)
        except Exception as error:  # noqa: BLE001  the topics behind it must be checked all the same
            self._failed(place.topic, error)
            return None
        for row in page.records:
            if row.name <= place.tried:
                continue
            self._counts["seen"] += 1
            try:
                self._end(place.topic, row)
            except Exception as error:  # noqa: BLE001  the others must be checked all the same
                self._failed(f"{place.topic}/{row.name}", error)
            if self.ports.clock.now() >= stop:
                return replace(place, tried=row.name)
        return None if page.cursor is None else _Place(place.topics, place.topic, page.cursor)

    def _failed(self, place: str, error: Exception) -> None:
        self._counts["failed"] += 1
        if error not in self._reported:
            self._reported.add(error)
            self.report(place, error)

    def _end(self, topic: str, row: Record) -> None:
        """End a registration if it has to; it stays if it has changed meanwhile."""
        registration = Registration.of(topic, row.name, row.value, row.expires_at)
        if not registration.lives(self.ports.clock.now()):
            count, reason = "over", Left.LEASE_OVER
        elif not self._is_usable(registration.channel):
            count, reason = "gone", Left.QUEUE_GONE
        else:
            return
        self._counts[count] += DirectoryService(self.ports).drop(topic, row, reason)

    def _is_usable(self, channel: str) -> bool:
        """Whether a queue exists and carries the tag; checked once for all registrations that share it.

        Raises:
            Exception: the check failed, now or for another registration of this run.
        """
        if channel not in self._channels:
            try:
                self.ports.channels.resolve(channel, new=False)
                self._channels[channel] = True
            except ChannelRefused:
                self._channels[channel] = False
            except Exception as error:  # noqa: BLE001  whatever it is, all who share the queue get it
                self._channels[channel] = error
        found = self._channels[channel]
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found

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
