"""The bit picture of a batch: any part of it, from all items down to single ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fanin.console.live.feeds import View
from fanin.console.pages.addresses import natural
from fanin.console.pages.heading import Heading, page_of
from fanin.console.pages.progress import Row
from fanin.console.pictures.bits import Drawing
from fanin.console.state import Console, console_of
from fanin.domain.batch import Batch, Mode
from fanin.domain.ids import parse_batch_id
from fanin.errors import InvalidRequest

_FRAGMENTS: Final = ("path", "drawn", "figures", "table")


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """What is shown of a batch.

    Attributes:
        batch: its row.
        drawing: its picture; None of an estimated batch, which has none.
    """

    batch: Batch
    drawing: Drawing | None

    @property
    def facts(self) -> tuple[object, ...]:
        """What the picture shows; equal as long as nothing changes."""
        picture = None if self.drawing is None else self.drawing.picture
        words = () if picture is None else (picture.size, picture.cells, picture.items)
        return (self.batch.state, *words)


@dataclass(frozen=True, slots=True)
class NodeAsked:
    """The node that an address names.

    Attributes:
        batch_id: the batch.
        level: of the node; None for the root.
        number: of the node on its level.
    """

    batch_id: int
    level: int | None = None
    number: int = 0

    @classmethod
    def of(cls, request: Request) -> NodeAsked:
        """Read an address.

        Raises:
            InvalidRequest: it has something that is not a number.
        """
        query = request.query_params
        return cls(
            parse_batch_id(request.path_params["batch_id"]),
            natural("level", query.get("level")),
            natural("number", query.get("number")) or 0,
        )


def shown(console: Console, batch_id: int, level: int | None = None, number: int = 0) -> ShownPicture:
    """Read one node of a batch: one call, and at most 66 rows.

    Raises:
        InvalidRequest: there is no such node.
    """
    ledger = console.fanin.ledger
    try:
        picture = ledger.picture(batch_id, level=level, number=number)
    except InvalidRequest:
        batch = ledger.status(batch_id, brief=True).batch
        if batch.mode is not Mode.ESTIMATED:
            raise
        return ShownPicture(batch, None)
    return ShownPicture(picture.batch, Drawing(picture))


def fragments(console: Console, what: ShownPicture) -> Mapping[str, str]:
    """The live parts of a picture, which stand in the macro ``picture``."""
    return {
        f"picture-{name}": console.templates.macro("picture_parts.html", name, what) for name in _FRAGMENTS
    }


def view(console: Console, asked: NodeAsked) -> View:
    """The live part of the page."""
    what = shown(console, asked.batch_id, asked.level, asked.number)
    return View(fragments(console, what), what.facts, over=what.batch.state.terminal)


def picture(request: Request) -> Response:
    console, asked = console_of(request), NodeAsked.of(request)
    what = shown(console, asked.batch_id, asked.level, asked.number)
    query = {} if asked.level is None else {"level": asked.level, "number": asked.number}
    address = console.templates.url("live", "batches", asked.batch_id, "picture", **query)
    live = None if what.batch.state.terminal else address
    # What the picture has read is enough for a heading: how far the whole batch is would take as much again.
    above = Heading(Row(what.batch, None), console.now())
    return page_of(request, "picture.html", "picture", above, live=live, shown=what)


async def live(request: Request) -> Response:
    console, asked = console_of(request), NodeAsked.of(request)
    read = partial(view, console, asked)
    return console.follow(request, ("picture", asked), read)


ROUTES: Final = (
    Route("/batches/{batch_id}/picture", picture),
    Route("/live/batches/{batch_id}/picture", live),
)
