"""docs/explanation/architecture.md and CONTRIBUTING.md name files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "fanin" / "python" / "fanin"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
HOUSE = PAGE.split("## The house")[1].split("\n## ")[0]
TEXTS = {"architecture": PAGE, "contributing": (ROOT / "CONTRIBUTING.md").read_text()}
ROOMS = ("ledger", "scatters", "buffers", "directory")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_file_that_it_names_is_there(text: str) -> None:
    # Given the files that the page names, with each room where it says <room>
    told = set(re.findall(r"`([a-z0-9_/<>]+/[a-z0-9_<>]+\.py)`", text))
    named = {path.replace("<room>", room) for path in told for room in ROOMS}
    assert len(named) > 10
    # Then each is in the package, or else in the repository
    assert {path for path in named if not (PACKAGE / path).is_file() and not (ROOT / path).is_file()} == set()


def test_it_has_every_room_and_no_other() -> None:
    told = set(re.findall(r"`([a-z0-9_/]+)/`", HOUSE)) | {"app"}
    there = {str(found.parent.relative_to(PACKAGE)) for found in PACKAGE.rglob("__init__.py")}
    assert told == there - {".", "entry/http/v1"}


def test_it_has_every_function() -> None:
    table = PAGE.split("| function |")[1].split("\n\n")[0]
    told = re.findall(r"^\| ([a-z_]+) \|", table, re.MULTILINE)
    assert sorted(told) == sorted(folder.parent.name for folder in ROOT.glob("functions/*/handler.py"))
