"""What all commands share: the tracker they call, and how they print answers and errors."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from fanin.cli.exits import ExitCode
from fanin.cli.listing import FactSheet, Table
from fanin.errors import FaninError
from fanin.names import ENV_API_URL, ENV_PROFILE, PROBLEM_ROOT

if TYPE_CHECKING:
    from rich.console import Console

    from fanin.client.tracker import Tracker


@dataclass
class Session:
    """One run of a command.

    Attributes:
        as_json: print one JSON document instead of text for people.
        local: use the stack of ``fanin local up``.
        api_url: use the API at this URL.
        given: a tracker to use instead; ``local``, ``api_url`` and the environment are then ignored.
        words: the words of the command line after ``fanin``.
    """

    as_json: bool = False
    local: bool = False
    api_url: str | None = None
    given: Tracker | None = None
    words: tuple[str, ...] = ()

    @cached_property
    def tracker(self) -> Tracker:
        """The tracker for the stack that the options name, or else the environment."""
        from fanin.client.tracker import Tracker

        if self.given is not None:
            return self.given
        if self.local:
            return Tracker.local()
        if self.api_url:
            return Tracker.over_https(self.api_url)
        return Tracker.from_env()

    @property
    def stack(self) -> str:
        """The stack in use: ``local``, the URL of an API, or ``tables``."""
        if self.local or (not self.api_url and os.environ.get(ENV_PROFILE)):
            return "local"
        return self.api_url or os.environ.get(ENV_API_URL) or "tables"

    def say_stack(self) -> None:
        """Say on stderr which stack answers, and which URL of the environment is not used."""
        if self.given is not None or self.as_json:
            return
        url = os.environ.get(ENV_API_URL)
        why = "--local" if self.local else "--api-url" if self.api_url else ENV_PROFILE
        unused = f"; {why} is used, and not {ENV_API_URL}={url}" if url and url != self.stack else ""
        from fanin.client.local_stack import folder_elsewhere

        folder = folder_elsewhere() if self.stack == "local" else None
        where = f", that of {folder}" if folder else ""
        self.remark(f"stack: {self.stack}{where}{unused}")

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before something is destroyed.

        Raises:
            typer.BadParameter: nobody can be asked, and --yes is not given.
            typer.Exit: the answer is no.
        """
        if yes:
            return
        if not sys.stdin or not sys.stdin.isatty():
            raise typer.BadParameter(f"{question} Pass --yes to do it without a terminal")
        if not typer.confirm(question, err=True):
            raise typer.Exit(ExitCode.WRONG)

    @cached_property
    def stdout(self) -> Console:
        """Prints the answer as text."""
        from rich.console import Console

        return Console(highlight=False)

    @cached_property
    def stderr(self) -> Console:
        """Shows progress and remarks, which must never mix with the answer."""
        from rich.console import Console

        return Console(stderr=True, highlight=False)

    @property
    def draws(self) -> bool:
        """Whether stderr is a terminal that can redraw, and may be used for progress."""
        if self.as_json or not ("stderr" in self.__dict__ or sys.stderr.isatty()):
            return False
        return self.stderr.is_terminal and not self.stderr.is_dumb_terminal

    def command(self, *words: str) -> str:
        """A command line that can be pasted into a shell, for the same stack."""
        options = ["--local"] if self.local else ["--api-url", self.api_url] if self.api_url else []
        return shlex.join(["fanin", *options, *words])

    def answer(self, document: Any, *text: str | FactSheet | Table, cursor: str | None = None) -> None:
        """Print the answer: the document with ``--json``, otherwise the text, and how to get the next page.

        A terminal shows tables. In a pipe each record is a line; sentences beside a table then go to stderr.

        Raises:
            OSError: stdout is closed; Python then has none.
        """
        if sys.stdout is None:
            raise OSError(errno.EBADF, "stdout is closed")
        if self.as_json:
            typer.echo(json.dumps(document, ensure_ascii=False))
        elif "stdout" in self.__dict__ or sys.stdout.isatty():
            for part in text:
                folded = _folded(part, self.stdout.width) if isinstance(part, str) and "`" in part else None
                self.stdout.print(folded or part, markup=False, soft_wrap=folded is not None)
        else:
            listed = any(isinstance(part, Table) for part in text)
            for part in text:
                if isinstance(part, str):
                    typer.echo(part, err=listed)
                else:
                    if isinstance(part, Table) and part.empty and not len(part):
                        self.remark(part.empty)
                    typer.echo("".join(f"{line}\n" for line in part.lines()), nl=False)
        self.more(cursor)

    def remark(self, text: str) -> None:
        """Print a line to stderr, beside the answer."""
        typer.echo(text, err=True)

    def more(self, cursor: str | None) -> None:
        """Say how to get the next page, if there is one; a JSON document has its cursor already."""
        if cursor is not None and not self.as_json:
            self.remark(f"more results: pass --cursor {cursor}, or --all")

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
    """The session of the running command."""
    found: Session = ctx.ensure_object(Session)
    return found


def with_stdin(words: Iterable[str]) -> Iterator[str]:
    """Words of the command line; in place of ``-`` the lines of stdin, stripped and without empty ones."""
    for word in words:
        yield from filter(None, (line.strip("\r\n ") for line in sys.stdin)) if word == "-" else (word,)


def _folded(text: str, width: int) -> str:
    """A line broken between words, but never within a command, so that it can be copied as it stands."""
    lines = [""]
    for word in re.findall(r"\s*(?:`[^`]*`\S*|\S+)", text):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append(word.lstrip())
        else:
            lines[-1] += word
    return "\n".join(lines)
