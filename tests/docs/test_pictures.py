"""The pictures of the documentation are there, small, and shown somewhere."""

import re
import struct
from pathlib import Path

from tests.browser.screenshots import PICTURES, SIZES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LARGEST = 150_000
"""Bytes of a picture."""


def linked() -> set[Path]:
    """The files that pages show as pictures."""
    return {
        (page.parent / link).resolve()
        for page in PAGES
        for link in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text())
        if "://" not in link
    }


def test_each_picture_is_shown_and_each_that_is_shown_is_there() -> None:
    assert linked() == {PICTURES / f"{name}.png" for name in SIZES} == set(PICTURES.iterdir())


def test_pictures_have_their_sizes_and_are_small() -> None:
    for name, size in SIZES.items():
        content = (PICTURES / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG"), f"{name}: run `make screenshots`"
        assert struct.unpack(">II", content[16:24]) == size
        assert len(content) <= LARGEST
