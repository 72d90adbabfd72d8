"""The reference of the command line, docs/cli.md; ``python -m fanin.cli.reference`` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import typer

from fanin.cli.main import app

_HEAD: Final = """# The command line

This page is what `--help` prints, written by `python -m fanin.cli.reference > docs/cli.md`; a test
compares the two.

With `--json`, which may stand anywhere, stdout holds one JSON document and nothing else: the API's
answer (`fanin openapi` describes it) where a command has an API call behind it. Errors go to stderr:
one line that says what to do, or with `--json` a problem document (RFC 9457).

    id=$(fanin open --user-key catalog-42)
    fanin add "$id" 3 --ids > ids.txt
    fanin close "$id"
    fanin ack - < ids.txt
    fanin watch "$id"
"""
_WIDTH: Final = 100


def reference() -> str:
    """The page, in Markdown."""
    command = typer.main.get_command(app)
    sections = [_HEAD, *(_section(names, one) for names, one in _walk(("fanin",), command))]
    return "\n".join(sections)


def _walk(names: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield names, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _walk((*names, name), child)


def _section(names: tuple[str, ...], command: Any) -> str:
    parent = None
    for name in names[:-1]:
        parent = typer.Context(command, info_name=name, parent=parent)
    context = typer.Context(
        command,
        info_name=names[-1],
        parent=parent,
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
    )
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    text = "\n".join(lines)
    return f"## {' '.join(names)}\n\n```text\n{text}\n```\n"


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 - that is its purpose
