"""The commands that pages name exist, with these arguments."""

from __future__ import annotations

import re
import shlex
from html import unescape

import pytest
import typer.main

from fanin.cli.main import app
from fanin.console.pages.batches import BATCHES
from fanin.console.pages.frames import FRAMES
from fanin.console.pages.scatters import SCATTERS
from fanin.console.rendering import HERE

TEXTS = [path.read_text() for path in sorted((HERE / "templates").glob("*.html"))]
VALUES = {"LIMIT": "5", "ENVELOPES": "5"}
"""Of words that stand for numbers."""


def named() -> list[str]:
    """The commands that templates and lists name, with a value for each expression."""
    found = {unescape(text) for page in TEXTS for text in re.findall(r"<code>(fanin .*?)</code>", page)}
    places = {place.command for place in (BATCHES, SCATTERS, FRAMES)}
    return sorted(re.sub(r"{{.*?}}", "7", text) for text in found | places)


def test_pages_name_commands() -> None:
    assert "fanin buffer define NAME LIMIT" in named()


@pytest.mark.parametrize("text", named())
def test_the_command_can_be_called_so(text) -> None:
    _, *words = (VALUES.get(word, word) for word in shlex.split(text))
    command = typer.main.get_command(app)
    context = command.make_context("fanin", list(words))
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
    assert not context.args
