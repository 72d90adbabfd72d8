"""What actions are about: batches, buffers, routes and registrations; and the actions on the last three."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from fanin.app.api import Fanin
from fanin.console.actions import action, batches
from fanin.console.actions.action import ConsoleAction, Effect, Field, Press, Question, Segments
from fanin.console.actions.words import are
from fanin.domain.buffer import Level
from fanin.domain.directory import Policy, Registration, Route
from fanin.domain.ids import parse_batch_id
from fanin.domain.limits import MAX_LIMIT, counted
from fanin.errors import InvalidRequest

LISTED: Final = 100
"""Registrations that are counted; of more, a page says that there are more."""


class Limit(ConsoleAction[Level]):
    name, operation, title, hint = "limit", "defineBuffer", "Change the limit", "It drains first"
    typed = True

    def ask(self, press: Press, level: Level) -> Question:
        buffer, pending = level.buffer, level.pending
        drains = (
            f"The buffer drains first: puts are rejected until the {counted(pending, 'payload')} in it"
            f" {are(pending)} done."
            if pending
            else "The buffer is empty: the next put has the new limit."
        )
        slots, draining = f"{pending:,}", "yes" if level.draining else "no"
        asked = press.text("limit") or str(buffer.limit)
        return Question(
            (f"The limit is {buffer.limit:,} payloads now.", drains),
            f"Change the limit of {buffer.name}",
            (("Limit", f"{buffer.limit:,}"), ("Slots in use", slots), ("Draining", draining)),
            fields=(Field("limit", "New limit", asked, "number", most=MAX_LIMIT),),
        )

    def do(self, press: Press, level: Level) -> Effect:
        before, typed = level.buffer, press.text("limit")
        if not (typed.isascii() and typed.isdigit() and 0 < len(typed) <= len(str(MAX_LIMIT))):
            raise InvalidRequest(f"a limit is a whole number from 1 to {MAX_LIMIT:,}, not {typed[:32]!r}")
        limit = int(typed)
        if limit == before.limit:
            return action.nothing(f"Nothing was done: the limit is {limit:,} already.", limit=limit)
        # With its queue: a buffer that was deleted in between is not made anew.
        after = press.fanin.buffers.define(before.name, limit, queue=before.queue)
        says = f"The limit was {before.limit:,}, and is {after.limit:,}."
        if level.pending:
            says += f" {counted(level.pending, 'payload')} in it {are(level.pending)} to be done first."
        return action.done(says, limit_before=before.limit, limit=after.limit, pending=level.pending)


class DeleteRoute(ConsoleAction[Route]):
    name, operation, title, hint = "delete", "deleteRoute", "Delete", "Its events go to nobody"
    danger = True

    def ask(self, press: Press, route: Route) -> Question:
        page = press.fanin.directory.page(route.topic, attributes=route.attributes or None, limit=LISTED)
        listed = f"{'at least ' if page.cursor else ''}{counted(len(page.registrations), 'registration')}"
        get = f"{listed} of it may get" if route.policy is Policy.ALL else f"one of {listed} of it gets"
        says = (
            f"Events that match its pattern no longer go to the topic {route.topic}. Now {get} each of them."
        )
        pattern = json.dumps(dict(route.pattern), ensure_ascii=False)
        facts = (("Topic", route.topic), ("Policy", str(route.policy)), ("Pattern", pattern))
        warning = "This cannot be undone; the pattern above makes the route again."
        return Question((says,), f"Delete the route {route.name}", facts, warning)

    def do(self, press: Press, route: Route) -> Effect:
        if not press.fanin.routing.delete(route.name):
            return action.nothing(f"Nothing was done: {route.name} was deleted before.", gone=True)
        return action.done(f"The route {route.name} is deleted.", gone=True, deleted=True)


class Deregister(ConsoleAction[Registration]):
    name, operation, title = "deregister", "deregister", "Deregister"
    hint = "Nothing is sent to it any more"
    danger = True

    def ask(self, _: Press, one: Registration) -> Question:
        attributes = ", ".join(f"{name}={value}" for name, value in one.attributes.items()) or "none"
        sent = f"What is sent to the topic {one.topic} from now on no longer reaches {one.name}."
        says = (
            f"{sent} What was sent before stays in its queue.",
            "If the instance still runs, it registers again when it renews its lease.",
        )
        facts = (("Channel", one.channel), ("Attributes", attributes))
        return Question(says, f"Deregister {one.name}", facts)

    def do(self, press: Press, one: Registration) -> Effect:
        if not press.fanin.directory.deregister(one.topic, one.name):
            return action.nothing(f"Nothing was done: {one.name} was not registered.", gone=True)
        return action.done(f"{one.name} is deregistered from {one.topic}.", gone=True, deleted=True)


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
        actions: in the order of their buttons.
        find: reads one, with one call.
        title: what a page calls it.
    """

    kind: str
    place: str
    keys: tuple[str, ...]
    actions: tuple[ConsoleAction[T], ...]
    find: Callable[[Fanin, Keys], T]
    title: Callable[[T], str]

    def segments(self, keys: Keys) -> Segments:
        """The path of its page."""
        return (self.place, *(keys[name] for name in self.keys))


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
    (Limit(),),
    lambda fanin, keys: fanin.buffers.status(keys["name"]),
    lambda level: level.buffer.name,
)
ROUTE: Final = Subject(
    "route",
    "routes",
    ("name",),
    (DeleteRoute(),),
    lambda fanin, keys: fanin.routing.get(keys["name"]),
    lambda route: route.name,
)
REGISTRATION: Final = Subject(
    "registration",
    "directory",
    ("topic", "name"),
    (Deregister(),),
    lambda fanin, keys: fanin.directory.get(keys["topic"], keys["name"]),
    lambda one: f"{one.name} of {one.topic}",
)
SUBJECTS: Final[tuple[Subject[Any], ...]] = (BATCH, BUFFER, ROUTE, REGISTRATION)
