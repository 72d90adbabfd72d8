"""Pages of the documentation as tests use them: the files that a reader saves, and the commands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"

_STEP: Final = re.compile(
    r"(?: as `(?P<name>[^`\n]+)`:\n\n)?^```(?P<language>\w+)\n(?P<content>.*?)^```$"
    r"|^> (?P<quote>[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)


class Step(NamedTuple):
    """A block of a page, or a line of output that it quotes.

    Attributes:
        saved_as: name of the file that its reader saves it as; None if the page names none. The line before
            the block ends in "as `name`:".
        language: of the block; empty for a quoted line.
        content: its text.
        quoted: whether it is a line of output that the page quotes.
    """

    saved_as: str | None
    language: str
    content: str
    quoted: bool = False


def text(page: str) -> str:
    """The text of a page, by its path below ``docs/``."""
    return (DOCS / page).read_text()


def steps(page: str) -> Iterator[Step]:
    """The blocks and quoted lines of a page, in order."""
    for match in _STEP.finditer(text(page)):
        quote = match["quote"]
        if quote is None:
            yield Step(match["name"], match["language"], match["content"])
        else:
            yield Step(None, "", quote, quoted=True)


def code(page: str, language: str = "python") -> list[str]:
    """All blocks of a language."""
    return [step.content for step in steps(page) if step.language == language]


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a language that are not saved as files."""
    return [step.content for step in steps(page) if step.language == language and not step.saved_as]


def save(page: str, folder: Path) -> None:
    """Save the files of a page in a folder, as its reader does; the last of several with one name stays.

    Folders are those that the page says to make.
    """
    for made in re.findall(r"^mkdir (.+)$", text(page), re.MULTILINE):
        (folder / made).mkdir()
    for step in steps(page):
        if step.saved_as:
            (folder / step.saved_as).write_text(step.content)
