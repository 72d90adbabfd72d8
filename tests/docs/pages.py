"""Pages of the documentation as tests use them: the files that a reader saves, and the commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"


def text(page: str) -> str:
    """The text of a page, by its path below ``docs/``."""
    return (DOCS / page).read_text()


def blocks(page: str, language: str) -> list[str]:
    """The blocks of code of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)


def files(page: str) -> dict[str, str]:
    """The blocks that a reader saves, by their names: those after a line that ends in "as `name`:"."""
    found = re.findall(r" as `([^`\n]+)`:\n\n```\w+\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)
    assert len(dict(found)) == len(found), "a page names each file once"
    return dict(found)


def save(page: str, folder: Path) -> dict[str, Path]:
    """Save the files of a page in a folder, as its reader does."""
    saved = {name: folder / name for name in files(page)}
    for name, content in files(page).items():
        saved[name].parent.mkdir(parents=True, exist_ok=True)
        saved[name].write_text(content)
    return saved
