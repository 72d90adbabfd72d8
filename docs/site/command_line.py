"""The page of the reference that documents the command line, made from its help."""

from collections.abc import Iterator
from typing import Any, Final

import typer

from fanin.cli.main import HELP_OPTIONS, app

_HEAD: Final = """# The command line

This page is generated from `--help` by `python -m docs.site`; a test compares the two.

With `--json`, which may come before or after the command, stdout holds one JSON document and nothing
else. For a command that calls the API it is the API's answer, which `fanin openapi` describes. Errors go
to stderr: one line that says what to do, or with `--json` a problem document (RFC 9457).

A terminal gets tables. In a pipe or a file each record is a line, and tabs separate its fields: a table
has a header line and all its columns, numbers have no separators, times are in RFC 3339, and `40+` stands
for 40 or more. What `status` and `watch` print has a line for each name, with its value. Within a field a
backslash is written as `\\\\`, a tab as `\\t`, line ends as `\\n` and `\\r`, and other characters that would
break a line like `\\x1b` and `\\u2028`. Remarks and progress go to stderr.
[The how-to](../how-to/command-line.md) has examples.

    id=$(fanin open --user-key catalog-42)
    fanin add "$id" 3 --ids > ids.txt
    fanin close "$id"
    fanin ack - < ids.txt
    fanin watch "$id"
"""
_WIDTH: Final = 100


def page() -> str:
    """The whole page, in Markdown."""
    command = typer.main.get_command(app)
    return "\n".join([_HEAD, *(_section(context) for context in _walk("fanin", command, None))])


def _walk(name: str, command: Any, parent: typer.Context | None) -> Iterator[typer.Context]:
    """The command and all its subcommands, each in the context in which it is called."""
    context = typer.Context(
        command,
        info_name=name,
        parent=parent,
        help_option_names=list(HELP_OPTIONS),
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
    )
    yield context
    for inner, child in getattr(command, "commands", {}).items():
        yield from _walk(inner, child, context)


def _section(context: typer.Context) -> str:
    lines = (line.rstrip() for line in context.get_help().splitlines())
    text = "\n".join(lines)
    return f"## {context.command_path}\n\n```text\n{text}\n```\n"
