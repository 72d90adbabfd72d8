"""What actions are about: batches, buffers, routes and registrations; and the actions on the last three."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from fanin.app.api import Fanin
from fanin.console.actions import batches
from fanin.console.actions.action import (
    ConsoleAction,
    Effect,
    EffectKind,
    Field,
    Press,
    Question,
    Segments,
    nothing,
)
from fanin.console.actions.words import are
from fanin.domain.buffer import Level
from fanin.domain.directory import Policy, Registration, Route
from fanin.domain.ids import parse_batch_id
from fanin.domain.limits import MAX_LIMIT, counted
from fanin.errors import InvalidRequest

LISTED: Final = 100
"""Registrations that are counted; of more, a page says that there are more."""


def _always(_: object) -> str:
    return ""


def _ask_limit(press: Press, level: Level) -> Question:
    buffer = level.buffer
    drains = (
        f"The buffer drains first: puts are rejected until the {counted(level.pending, 'payload')} in it"
        f" {are(level.pending)} done."
        if level.pending
        else "The buffer is empty: the next put has the new limit."
    )
    return Question(
        (f"The limit is {buffer.limit:,} payloads now.", drains),
        f"Change the limit of {buffer.name}",
        (
            ("Limit", f"{buffer.limit:,}"),
            ("Slots in use", f"{level.pending:,}"),
            ("Draining", "yes" if level.draining else "no"),
        ),
        fields=(
            Field("limit", "New limit", press.text("limit") or str(buffer.limit), "number", most=MAX_LIMIT),
        ),
    )


def _limit(press: Press, level: Level) -> Effect:
    before, typed = level.buffer, press.text("limit")
    if not (typed.isascii() and typed.isdigit() and 0 < len(typed) <= len(str(MAX_LIMIT))):
        raise InvalidRequest(f"a limit is a whole number from 1 to {MAX_LIMIT:,}, not {typed[:32]!r}")
    limit = int(typed)
    if limit == before.limit:
        return nothing(f"Nothing was done: the limit is {limit:,} already.", limit=limit)
    # With its queue: a buffer that was deleted in between is not made anew.
    after = press.fanin.buffers.define(before.name, limit, queue=before.queue)
    numbers = {"limit_before": before.limit, "limit": after.limit, "pending": level.pending}
    says = f"The limit was {before.limit:,}, and is {after.limit:,}."
    if level.pending:
        says += f" {counted(level.pending, 'payload')} in it {are(level.pending)} to be done first."
    return Effect(EffectKind.DONE, says, numbers)


def _ask_delete(press: Press, route: Route) -> Question:
    page = press.fanin.directory.page(route.topic, attributes=route.attributes or None, limit=LISTED)
    listed = f"{'at least ' if page.cursor else ''}{counted(len(page.registrations), 'registration')}"
    get = f"{listed} of it may get" if route.policy is Policy.ALL else f"one of {listed} of it gets"
    says = f"Events that match its pattern no longer go to the topic {route.topic}. Now {get} each of them."
    return Question(
        (says,),
        f"Delete the route {route.name}",
        (
            ("Topic", route.topic),
            ("Policy", str(route.policy)),
            ("Pattern", json.dumps(dict(route.pattern), ensure_ascii=False)),
        ),
        warning="This cannot be undone; the pattern above makes the route again.",
    )


def _delete(press: Press, route: Route) -> Effect:
    deleted = press.fanin.routing.delete(route.name)
    if not deleted:
        return nothing(f"Nothing was done: {route.name} was deleted before.", gone=True)
    return Effect(EffectKind.DONE, f"The route {route.name} is deleted.", {"deleted": True}, gone=True)


def _ask_deregister(_: Press, one: Registration) -> Question:
    attributes = ", ".join(f"{name}={value}" for name, value in one.attributes.items()) or "none"
    sent = f"What is sent to the topic {one.topic} from now on no longer reaches {one.name}."
    return Question(
        (
            f"{sent} What was sent before stays in its queue.",
            "If the instance still runs, it registers again when it renews its lease.",
        ),
        f"Deregister {one.name}",
        (("Channel", one.channel), ("Attributes", attributes)),
    )


def _deregister(press: Press, one: Registration) -> Effect:
    ended = press.fanin.directory.deregister(one.topic, one.name)
    if not ended:
        return nothing(f"Nothing was done: {one.name} was not registered.", gone=True)
    return Effect(
        EffectKind.DONE, f"{one.name} is deregistered from {one.topic}.", {"deleted": True}, gone=True
    )


LIMIT: Final = ConsoleAction(
    "limit", "defineBuffer", "Change the limit", "It drains first", _always, _ask_limit, _limit, typed=True
)
DELETE_ROUTE: Final = ConsoleAction(
    "delete", "deleteRoute", "Delete", "Its events go to nobody", _always, _ask_delete, _delete, danger=True
)
DEREGISTER: Final = ConsoleAction(
    "deregister",
    "deregister",
    "Deregister",
    "Nothing is sent to it any more",
    _always,
    _ask_deregister,
    _deregister,
    danger=True,
)


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


BATCH: Final = Subject(
    "batch",
    "batches",
    ("batch_id",),
    batches.ACTIONS,
    lambda fanin, keys: fanin.ledger.status(parse_batch_id(keys["batch_id"]), brief=True).batch,
    lambda batch: batch.user_key or str(batch.batch_id),
)
BUFFER: Final = Subject(
    "buffer",
    "buffers",
    ("name",),
    {"limit": LIMIT},
    lambda fanin, keys: fanin.buffers.status(keys["name"]),
    lambda level: level.buffer.name,
)
ROUTE: Final = Subject(
    "route",
    "routes",
    ("name",),
    {"delete": DELETE_ROUTE},
    lambda fanin, keys: fanin.routing.get(keys["name"]),
    lambda route: route.name,
)
REGISTRATION: Final = Subject(
    "registration",
    "directory",
    ("topic", "name"),
    {"deregister": DEREGISTER},
    lambda fanin, keys: fanin.directory.get(keys["topic"], keys["name"]),
    lambda one: f"{one.name} of {one.topic}",
)
SUBJECTS: Final[tuple[Subject[Any], ...]] = (BATCH, BUFFER, ROUTE, REGISTRATION)
