"""docs/architecture.md against the folders: whoever looks a behaviour up there finds its file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "fanin" / "python" / "fanin"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
HOUSE = PAGE.split("## The house")[1].split("\n## ")[0]


def test_every_file_that_it_names_is_there() -> None:
    named = set(re.findall(r"`([a-z0-9_/]+\.py)`", PAGE))
    assert len(named) > 50
    assert {path for path in named if not (PACKAGE / path).is_file() and not (ROOT / path).is_file()} == set()


def test_it_has_every_room_and_no_other() -> None:
    told = set(re.findall(r"`([a-z0-9_/]+)/`", HOUSE)) | {"app"}
    there = {str(found.parent.relative_to(PACKAGE)) for found in PACKAGE.rglob("__init__.py")}
    assert told == there - {".", "entry/http/v1"}


def test_it_has_every_function() -> None:
    table = PAGE.split("| function |")[1].split("\n\n")[0]
    told = re.findall(r"^\| ([a-z_]+) \|", table, re.MULTILINE)
    assert sorted(told) == sorted(folder.parent.name for folder in ROOT.glob("functions/*/handler.py"))
