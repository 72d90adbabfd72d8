"""Long texts: their beginnings, so that pages keep their size whatever others write; or all, as a file."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

_ESCAPED: Final = {"&": 5, "<": 4, ">": 4, '"': 5, "'": 5}
"""Bytes of the characters that HTML writes otherwise."""


class Excerpt(NamedTuple):
    """A text, or its beginning.

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


def excerpt(text: str, most: int, room: int | None = None) -> Excerpt:
    """As much of a text as may be shown.

    Args:
        text: all of it.
        most: characters.
        room: bytes of its HTML, where signs of markup are longer; twice as many by default.
    """
    # JSON may have one half of a surrogate pair, which UTF-8 cannot carry.
    whole = text.encode(errors="backslashreplace").decode()
    shown = whole[:most]
    left = 2 * most if room is None else room
    for at, character in enumerate(shown):
        left -= _html(character)
        if left < 0:
            return Excerpt(shown[:at], len(whole))
    return Excerpt(shown, len(whole))


def excerpts(texts: Sequence[str], *, most: int, room: int) -> list[Excerpt]:
    """The beginnings of the texts of a page.

    Args:
        texts: in the order of the page.
        most: characters of each.
        room: bytes of HTML of all together. Each has the same share of it; what a short text does not need
            is for those that follow.
    """
    found: list[Excerpt] = []
    for number, text in enumerate(texts):
        found.append(excerpt(text, most, room // (len(texts) - number)))
        room -= sum(map(_html, found[-1].text))
    return found


def shown_json(value: Any) -> str:
    """A JSON value as text; ``excerpts`` cuts it."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError) as error:
        return f"(not shown: {error})"


def download(text: str, media_type: str, name: str) -> Response:
    """All of a text, as a file: nothing of it runs in a browser."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.encode(errors="replace"), media_type=media_type, headers=headers)


def _html(character: str) -> int:
    return _ESCAPED.get(character) or len(character.encode())
