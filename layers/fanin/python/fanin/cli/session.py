"""What the commands share: which stack they talk to, and how they answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import typer

from fanin.errors import FaninError
from fanin.names import PROBLEM_ROOT

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from fanin.client.tracker import Tracker

_ENDLESS: Final = 100_000


@dataclass
class Session:
    """One run of a command.

    Attributes:
        as_json: answer with one JSON document instead of text for people.
        local: talk to the stack of ``fanin local up``.
        api_url: talk to this API.
        given: a tracker to use in place of all these.
    """

    as_json: bool = False
    local: bool = False
    api_url: str | None = None
    given: Tracker | None = None

    @cached_property
    def tracker(self) -> Tracker:
        """The tracker that the options, or else the environment, ask for."""
        from fanin.client.tracker import Tracker

        if self.given is not None:
            return self.given
        if self.local:
            return Tracker.local()
        if self.api_url:
            return Tracker.over_https(self.api_url)
        return Tracker.from_env()

    @cached_property
    def console(self) -> Console:
        """Where people read the answer."""
        from rich.console import Console

        # What is piped is not cut to some width.
        width = None if sys.stdout.isatty() else _ENDLESS
        return Console(highlight=False, width=width)

    @cached_property
    def aside(self) -> Console:
        """Where progress and remarks go, so that they are never in the answer."""
        from rich.console import Console

        return Console(stderr=True, highlight=False)

    def answer(self, document: Any, *text: RenderableType) -> None:
        """Print the answer: the document with ``--json``, else the text."""
        if self.as_json:
            typer.echo(json.dumps(document, ensure_ascii=False))
            return
        for part in text:
            self.console.print(part, markup=False)

    def remark(self, text: str) -> None:
        """Say something beside the answer."""
        typer.echo(text, err=True)

    def more(self, cursor: str | None) -> None:
        """Say how to get the next page, if there is one; a JSON document says it itself."""
        if cursor is not None and not self.as_json:
            self.remark(f"there is more: --cursor {cursor}, or --all")

    def explain(self, error: FaninError) -> None:
        """Print an error to stderr: one line, or a problem document with ``--json``."""
        if self.as_json:
            problem: dict[str, Any] = {"type": PROBLEM_ROOT + error.code, "detail": str(error)}
            if error.retry_after is not None:
                problem["retry_after"] = error.retry_after
            typer.echo(json.dumps(problem, ensure_ascii=False), err=True)
        else:
            typer.echo(f"fanin: {' '.join(str(error).split())}", err=True)


def session(ctx: typer.Context) -> Session:
    """The session of a command."""
    found: Session = ctx.ensure_object(Session)
    return found


def lines_of_stdin() -> Iterator[str]:
    """The lines of stdin, without their ends, those that are empty left out."""
    return (stripped for line in sys.stdin if (stripped := line.strip("\r\n ")))
