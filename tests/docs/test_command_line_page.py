"""The page that documents the command line, made from its help."""

import os
import re
import subprocess
import sys

import pytest
import typer

from docs.site.command_line import page
from fanin.cli.main import app

PAGE = page()


def commands(command, path=("fanin",)):
    yield " ".join(path)
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


def test_every_command_has_one_section_and_groups_come_before_their_commands():
    sections = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert sections == list(commands(typer.main.get_command(app)))
    assert sections.index("fanin local") < sections.index("fanin local up")


def test_every_option_is_explained():
    # Given the options of each command, each with the lines that continue it
    sections = re.findall(r"^Options:\n((?:  .*\n)+)", PAGE, re.MULTILINE)
    options = [
        option
        for section in sections
        for option in re.findall(r"^  (-.*\n(?: {4,}.*\n)*)", section, re.MULTILINE)
    ]
    # Then text follows the name and the kind of each, after two spaces or on the next line
    assert len(options) > 100
    assert [option for option in options if not re.search(r"(?: {2,}|\n +)\S", option)] == []


def test_no_line_ends_with_spaces_or_is_longer_than_100():
    assert [line for line in PAGE.splitlines() if line != line.rstrip()] == []
    text = "\n".join(re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL))
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("columns", ["40", "300"])
def test_the_page_is_the_same_whatever_the_terminal_is(columns):
    done = subprocess.run(
        [sys.executable, "-c", "from docs.site.command_line import page; print(page(), end='')"],
        env={**os.environ, "COLUMNS": columns, "TERMINAL_WIDTH": columns},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == PAGE
