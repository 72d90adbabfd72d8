"""What actions are about: batches, buffers, routes and registrations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from fanin.app.api import Fanin
from fanin.console.actions import batches, patterns
from fanin.console.actions.action import ConsoleAction, Segments
from fanin.domain.batch import Batch
from fanin.domain.buffer import Level
from fanin.domain.directory import Registration
from fanin.domain.ids import parse_batch_id
from fanin.domain.routing import Route

T = TypeVar("T")
Keys = Mapping[str, str]
"""The parameters of a path."""


@dataclass(frozen=True, slots=True)
class Subject(Generic[T]):
    """A kind of thing that has actions.

    Attributes:
        kind: what it is called.
        place: the part of the console that shows it; its pages begin with it.
        keys: names of the parameters of its path, in their order.
        actions: by name, in the order of their buttons.
        find: reads one, with one call.
        title: what a page calls it.
    """

    kind: str
    place: str
    keys: tuple[str, ...]
    actions: Mapping[str, ConsoleAction[T]]
    find: Callable[[Fanin, Keys], T]
    title: Callable[[T], str]

    def segments(self, keys: Keys) -> Segments:
        """The path of its page."""
        return (self.place, *(keys[name] for name in self.keys))


def offered(subject: Subject[T], found: T) -> tuple[ConsoleAction[T], ...]:
    """The actions that are possible for one, in the order of their buttons."""
    return tuple(one for one in subject.actions.values() if not one.why_not(found))


def _batch(fanin: Fanin, keys: Keys) -> Batch:
    return fanin.ledger.status(parse_batch_id(keys["batch_id"]), exact=False, brief=True).batch


def _level(fanin: Fanin, keys: Keys) -> Level:
    return fanin.buffers.status(keys["name"])


def _route(fanin: Fanin, keys: Keys) -> Route:
    return fanin.routing.get(keys["name"])


def _registration(fanin: Fanin, keys: Keys) -> Registration:
    return fanin.directory.get(keys["topic"], keys["name"])


BATCH: Final = Subject(
    "batch",
    "batches",
    ("batch_id",),
    batches.ACTIONS,
    _batch,
    lambda batch: batch.user_key or str(batch.batch_id),
)
BUFFER: Final = Subject(
    "buffer", "buffers", ("name",), {"limit": patterns.LIMIT}, _level, lambda level: level.buffer.name
)
ROUTE: Final = Subject(
    "route", "routes", ("name",), {"delete": patterns.DELETE_ROUTE}, _route, lambda route: route.name
)
REGISTRATION: Final = Subject(
    "registration",
    "directory",
    ("topic", "name"),
    {"deregister": patterns.DEREGISTER},
    _registration,
    lambda one: f"{one.name} of {one.topic}",
)
SUBJECTS: Final[tuple[Subject[Any], ...]] = (BATCH, BUFFER, ROUTE, REGISTRATION)
