"""The directory: registering instances, renewing, moving and ending registrations, and their events."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final

from fanin import names
from fanin.app.api import Directory
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.ports.records import Record
from fanin.domain import limits
from fanin.domain.directory import Left, Register, Registration, Registrations, change, check_channel
from fanin.errors import InvalidRequest, NotRegistered, Throttled
from fanin.wire.patterns import REGISTER, REGISTRATION

TOPICS: Final = "topics"
"""The namespace that lists the topics; the registrar walks it."""
TOPIC_PREFIX: Final = "topic/"
"""The namespace of a topic is this, followed by the topic's name."""
TRIES: Final = 5
_MONTH: Final = 30 * 86_400


class DirectoryService(Directory):
    """Implements ``fanin.app.api.Directory`` over ports.

    A registration is one row, and each change is one write of that row. So no change can be half done, and
    the table's stream reports all of them in order. Readers ignore a registration whose lease is over, even
    before the registrar has ended it.

    Args:
        ports: the directory, the channels, the bus.
    """

    def __init__(self, ports: Ports) -> None:
        self.ports = self._ports = ports

    def register(self, request: Register) -> Registration:
        limits.text("channel", request.channel, limits.MAX_CHANNEL, least=1)
        check_channel(request.channel)  # also of a heartbeat, for which the queue is not looked up
        limits.pairs("attributes", request.attributes)
        limits.whole("lease", request.lease, limits.MIN_LEASE, limits.MAX_LEASE)
        new: Registration | None = None
        for _ in range(TRIES):
            row = self._row(request.topic, request.name)
            old = _readable(request.topic, row)
            if old is not None and old == new:  # the try before was written, and its answer lost
                return old
            new = self._renewed(request, old)
            self._list_topic(new)
            if self._put(new, row.version if row else 0):
                return new
        raise _contended(request.topic, request.name)

    def deregister(self, topic: str, name: str) -> bool:
        tried: Record | None = None
        for _ in range(TRIES):
            row = self._row(topic, name)
            # ``since`` tells one stay of an instance from the next; a renewal keeps it.
            if row is None or (tried is not None and row.value.get("since") != tried.value.get("since")):
                return tried is not None  # an instance that was there has left, and maybe come back
            if self.drop(topic, row, Left.DEREGISTERED):
                return True
            tried = row
        raise _contended(topic, name)

    def get(self, topic: str, name: str) -> Registration:
        row = self._row(topic, name)
        found = _readable(topic, row)
        if found is None or not found.lives(self._ports.clock.now()):
            raise NotRegistered(f"nobody is registered as {name!r} in topic {topic!r}; register it first")
        return found

    def named(self, places: Collection[str]) -> dict[str, Registration]:
        """Read registrations by ``topic/name``.

        Raises:
            NotRegistered: one does not exist, or its lease is over.
        """
        topics: dict[str, list[str]] = {}
        for place in places:
            topic, _, name = place.partition("/")
            topics.setdefault(topic, []).append(name)
        now = self._ports.clock.now()
        found = {
            f"{topic}/{row.name}": one
            for topic, wanted in topics.items()
            for row in self._ports.directory.read(TOPIC_PREFIX + topic, wanted).values()
            if (one := _readable(topic, row)) is not None
        }
        for place in places:
            if place not in found or not found[place].lives(now):
                raise NotRegistered(f"nobody is registered as {place!r}; register it, or name its queue")
        return found

    def page(
        self,
        topic: str,
        *,
        attributes: Mapping[str, str] | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Registrations:
        limits.name("topic", topic, limits.MAX_NAME)
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        most, now = min(limit, limits.MAX_ROWS), self._ports.clock.now()
        page = self._ports.directory.page(TOPIC_PREFIX + topic, cursor=cursor, limit=most)
        found = (_readable(topic, row) for row in page.records)
        chosen = (one for one in found if one and one.lives(now) and one.has(attributes or {}))
        return Registrations(tuple(chosen), page.cursor)

    # Called by the functions behind the bus and the stream.

    def follow(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Register or deregister an instance, as an event of its creation or destruction says.

        Raises:
            InvalidRequest: the detail is malformed.
            ChannelRefused: as for ``register``.
        """
        try:
            topic, name = detail["topic"], detail["name"]
            created = detail_type == names.INSTANCE_CREATED
            request = REGISTER.decode(dict(detail), topic=topic, name=name) if created else None
        except (KeyError, TypeError) as error:
            raise InvalidRequest(
                f"the detail of {detail_type} lacks {error}: give topic and name, and a channel to register"
            ) from error
        if request is not None:
            self.register(request)
        else:
            self.deregister(topic, name)

    def announce(self, topic: str, old: Record | None, new: Record | None) -> None:
        """Publish the event of a change of a row, unless the change is a heartbeat.

        Args:
            topic: of the registration.
            old: the row before; None if it is new.
            new: the row now; None if its time to live removed it.

        Raises:
            Throttled, ServiceUnavailable: the bus did not accept the event; call again.
        """
        changed = change(_readable(topic, old), new and _read(topic, new))
        row = new or old
        if changed is None or row is None:
            return
        detail_type, registration = changed
        stay, step = f"{topic}/{row.name}.{registration.since}", row.version + (new is None)
        event_id = f"{self._ports.defaults.event_prefix}{stay}.{step}"
        detail, now = REGISTRATION.encode(registration), self._ports.clock.now()
        self._ports.events.publish(Event(event_id, detail_type, detail, now))

    def drop(self, topic: str, row: Record, reason: Left) -> bool:
        """End a registration as it was read; False if it has changed since.

        The row remains until its time to live removes it, and names the reason, which the stream reports.
        """
        return self._put(_read(topic, row).leave(reason, self._ports.clock.now()), row.version)

    def _row(self, topic: str, name: str) -> Record | None:
        limits.name("topic", topic, limits.MAX_NAME)
        limits.name("name", name, limits.MAX_NAME)
        return self._ports.directory.read(TOPIC_PREFIX + topic, [name]).get(name)

    def _renewed(self, request: Register, old: Registration | None) -> Registration:
        now = self._ports.clock.now()
        # A heartbeat names the channel that was resolved before, so the queue need not be looked up.
        known = old is not None and old.channel == request.channel
        channel = request.channel if known else self._ports.channels.resolve(request.channel)
        who, attributes = (request.topic, request.name), dict(request.attributes)
        since, until = old.since if old else now, (-(-now // 1000) + request.lease) * 1000
        return Registration(*who, channel, attributes, request.lease, since, until)

    def _list_topic(self, registration: Registration) -> None:
        """Make sure that the topic is listed for as long as the registration's row can exist."""
        listed = self._ports.directory.read(TOPICS, [registration.topic]).get(registration.topic)
        if listed is None or listed.expires_at < registration.expires_at:
            until = registration.expires_at + _MONTH
            self._ports.directory.put(TOPICS, registration.topic, {}, expires_at=until)

    def _put(self, registration: Registration, version: int) -> bool:
        place, until = (TOPIC_PREFIX + registration.topic, registration.name), registration.expires_at
        put = self._ports.directory.put
        return put(*place, registration.value, expires_at=until, if_version=version)[1]


def _read(topic: str, row: Record) -> Registration:
    return Registration.of(topic, row.name, row.value, row.expires_at)


def _readable(topic: str, row: Record | None) -> Registration | None:
    """The registration of a row; None if there is no row, or one that cannot be read.

    Such a row must not spoil its topic. The registrar reports it, and the instance's next heartbeat mends it.
    """
    with suppress(KeyError, TypeError, ValueError):
        return None if row is None else _read(topic, row)
    return None


def _contended(topic: str, name: str) -> Throttled:
    return Throttled(f"{topic}/{name} is being changed by other calls; try again", retry_after=1)
