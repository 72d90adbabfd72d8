"""The beginnings of long texts, so that a page keeps its size whatever others have written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

_ESCAPED: Final = {"&": 5, "<": 4, ">": 4, '"': 5, "'": 5}
"""Bytes of the characters that HTML writes otherwise."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of one text of several.

    Attributes:
        text: what is shown.
        size: bytes of the whole text.
        cut: whether the text goes on.
    """

    text: str
    size: int
    cut: bool

    @property
    def length(self) -> str:
        """The size of the whole text, for people."""
        return f"{self.size / 1024:,.1f} KB" if self.size >= 1024 else f"{self.size} bytes"  # noqa: PLR2004


class Beginning(NamedTuple):
    """A text that has a page to itself, or its beginning.

    Attributes:
        text: what is shown.
        length: characters of the whole text.
    """

    text: str
    length: int

    @property
    def cut(self) -> bool:
        """Whether the text goes on."""
        return len(self.text) < self.length


def beginning(text: str, most: int, *, escaped: int) -> Beginning:
    """As much of a text as may be shown.

    Args:
        text: all of it.
        most: characters.
        escaped: bytes of its HTML, where signs of markup are longer.
    """
    shown, _ = _fitting(text[:most], escaped, escaped)
    return Beginning(shown, len(text))


def excerpts(texts: Sequence[str], *, most: int, room: int) -> list[Excerpt]:
    """The beginnings of the texts of a page.

    Args:
        texts: in the order of the page.
        most: bytes of each.
        room: bytes of HTML of all together. Each has the same share of it; what a short text does not need
            is for those that follow.
    """
    found: list[Excerpt] = []
    for number, text in enumerate(map(_written, texts)):
        start, used = _fitting(text, most, room // (len(texts) - number))
        room -= used
        found.append(Excerpt(start, len(text.encode()), len(start) < len(text)))
    return found


def shown_json(value: Any) -> str:
    """A JSON value as text; ``excerpts`` cuts it."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError) as error:
        return f"(not shown: {error})"


def _written(text: str) -> str:
    """The text as UTF-8 can carry it: JSON may have one half of a surrogate pair."""
    return text.encode(errors="backslashreplace").decode()


def _fitting(text: str, most: int, room: int) -> tuple[str, int]:
    """As much of a text as fits into ``most`` bytes and ``room`` bytes of HTML, and the bytes of its HTML."""
    bare = html = 0
    for at, character in enumerate(text):
        size = len(character.encode(errors="replace"))
        bare, before, html = bare + size, html, html + _ESCAPED.get(character, size)
        if bare > most or html > room:
            return text[:at], before
    return text, html
