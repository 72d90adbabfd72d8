"""docs/reference/cli.md says what the command line says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fanin.cli.exits import MEANINGS
from fanin.cli.reference import reference

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()

COMMANDS = [
    "open", "add", "ack", "fail", "close", "change", "cancel", "status", "item", "missing", "failures",
    "results", "verify", "redrive", "resend", "attention", "why", "targets",
    "list", "expire", "watch", "fanout", "scatter", "scatter start", "scatter show", "replies",
    "directory", "directory register", "directory deregister", "directory show", "directory list",
    "route", "route put", "route show", "route list", "route delete", "route send",
    "frame", "frame open", "frame status", "frame claim",
    "buffer", "buffer define", "buffer status", "buffer list", "buffer put",
    "buffer take", "buffer done", "buffer delete",
    "spark", "spark submit", "spark status", "spark cancel", "spark dashboard",
    "release", "plan", "restore", "openapi", "ui",
    "local", "local up", "local down", "local status", "local env",
]  # fmt: skip


def test_the_page_is_what_help_prints():
    assert reference() == PAGE, "run: python -m fanin.cli.reference > docs/reference/cli.md"


def test_every_command_has_a_section():
    sections = re.findall(r"^## fanin ?(.*)$", PAGE, re.MULTILINE)
    assert sorted(sections) == sorted(["", *COMMANDS])


@pytest.mark.parametrize("code", MEANINGS)
def test_exit_codes_are_documented(code):
    assert re.search(rf"^ *{code.value}  {re.escape(MEANINGS[code])}$", PAGE, re.MULTILINE)


def test_usage_is_what_is_typed():
    usages = re.findall(r"^Usage: (fanin.*?)(?: \[| \{|$)", PAGE, re.MULTILINE)
    assert [f"fanin {command}".rstrip() for command in sorted(["", *COMMANDS])] == sorted(usages)
