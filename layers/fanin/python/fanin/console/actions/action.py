"""What an action is: what it asks, does, and says afterwards; and how far one press goes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

from starlette.datastructures import ImmutableMultiDict

from fanin.app.api import Fanin
from fanin.domain import paging
from fanin.errors import FaninError

T = TypeVar("T")
ShownFacts: TypeAlias = tuple[tuple[str, str], ...]
"""Labels and values that a page shows below each other."""
Segments: TypeAlias = tuple[object, ...]
"""The path of a page of the console."""


@dataclass(frozen=True, slots=True)
class Press:
    """What an action has to work with.

    Attributes:
        fanin: the eight services.
        now: tells the time, ms since the epoch.
        asked: the parameters of the address, and the fields of the form.
    """

    fanin: Fanin
    now: Callable[[], int]
    asked: ImmutableMultiDict[str, str]

    def text(self, name: str) -> str:
        """What somebody has typed into a field; empty if nothing."""
        return self.asked.get(name, "").strip()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form.

    Attributes:
        name: of the parameter.
        label: for people.
        value: at first.
        kind: of the HTML element: ``text``, ``number``, ``checkbox`` or ``hidden``.
        hint: what can be typed.
        most: of a number, its maximum; of a text, its length.
    """

    name: str
    label: str = ""
    value: str = ""
    kind: str = "text"
    hint: str = ""
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What a page asks once, before anything is done.

    Attributes:
        says: what will happen, in sentences with numbers.
        button: the act in words, with its number; empty if there is nothing to do.
        facts: the numbers as they are now.
        warning: what cannot be undone.
        fields: what the act needs to know.
        narrowing: what the numbers depend on. A form of its own asks again with other values.
        address: parameters of the address of the act. They are kept there, and not in fields, because a form
            changes the line ends of what it sends.
    """

    says: tuple[str, ...]
    button: str
    facts: ShownFacts = ()
    warning: str = ""
    fields: tuple[Field, ...] = ()
    narrowing: tuple[Field, ...] = ()
    address: Mapping[str, object] = field(default_factory=dict)


class EffectKind(StrEnum):
    """What became of an action."""

    DONE = "done"
    PARTLY = "partly"
    """Something was done, and something is left."""
    NOTHING = "nothing"
    """Nothing had to be done, or could be."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action did.

    Attributes:
        result: what became of it.
        says: that in one sentence, with numbers from the answer of the service.
        numbers: the same for the log, by the names that the API's log has for them.
        facts: what else there is to know.
        lines: a list of findings.
        links: where to look at it: texts and paths.
        again: the words of a button that goes on; empty if nothing is left.
        address: parameters with which it goes on.
        gone: whether the subject no longer has a page.
    """

    result: EffectKind
    says: str
    numbers: Mapping[str, int] = field(default_factory=dict)
    facts: ShownFacts = ()
    lines: tuple[str, ...] = ()
    links: tuple[tuple[str, Segments], ...] = ()
    again: str = ""
    address: Mapping[str, object] = field(default_factory=dict)
    gone: bool = False


FINAL: Final = "This cannot be undone."
"""The warning of what is final."""
AGAIN: Final = "Go on with the rest"
"""The button after the outcome of some pages of many."""


def done(says: str, facts: ShownFacts = (), *, gone: bool = False, **numbers: int) -> Effect:
    """The outcome of an action that did all that it was for; perhaps its subject is gone by that."""
    return Effect(EffectKind.DONE, says, numbers, facts, gone=gone)


def nothing(says: str, facts: ShownFacts = (), *, gone: bool = False, **numbers: int) -> Effect:
    """The outcome of an action that changed nothing, perhaps since its subject is gone."""
    return Effect(EffectKind.NOTHING, says, numbers, facts, gone=gone)


class ConsoleAction(ABC, Generic[T]):
    """One action on a batch, a buffer, a route or a registration.

    Attributes:
        name: in addresses.
        operation: what the API calls it, as in the OpenAPI document; the action log has that name.
        title: of its button.
        hint: what it does, in a few words.
        danger: whether it cannot be undone.
        typed: whether people type into its form; then what it refuses is told beside the form.
    """

    name: str
    operation: str
    title: str
    hint: str
    danger = False
    typed = False

    def why_not(self, _: T) -> str:
        """Why it is not possible, in a sentence; empty if it is."""
        return ""

    @abstractmethod
    def ask(self, press: Press, found: T) -> Question:
        """Read the numbers, and say what will happen."""

    @abstractmethod
    def do(self, press: Press, found: T) -> Effect:
        """Do it. Doing it twice changes nothing more than doing it once."""


PAGES: Final = 20
"""Calls that one press makes at most; what is left takes another."""
TIME_MS: Final = 15_000
"""After how long it makes no further call: an answer of API Gateway has 29 seconds."""


Found = TypeVar("Found", bound=paging.Page)
U = TypeVar("U")


def in_time(now: Callable[[], int], things: Iterable[U]) -> Iterator[U]:
    """As many of some things as one press has time for, and the first of them in any case."""
    until = now() + TIME_MS
    for thing in things:
        yield thing
        if now() >= until:
            return


def pages(press: Press, listing: Callable[..., Found], *which: Any, **options: Any) -> Iterator[Found]:
    """The pages of a listing that one press may read."""
    return in_time(press.now, islice(paging.pages(listing, *which, **options), PAGES))


def go_through(
    press: Press, call: Callable[..., Found], *which: Any, **options: Any
) -> tuple[list[Found], str | None, str]:
    """Call page by page, from the cursor of the address on, as far as one press goes.

    Returns:
        The answers; the cursor of what is left; what has failed, which leaves as it is what was done before.

    Raises:
        FaninError: the first call has failed.
    """
    found: list[Found] = []
    trouble = ""
    try:
        for page in pages(press, call, *which, cursor=press.text("cursor") or None, **options):
            found.append(page)  # noqa: PERF402  an error keeps those before it
    except FaninError as error:
        if not found:
            raise
        trouble = f" Then: {error}"
    return found, found[-1].cursor, trouble
