"""What stands in an address of a page: text from outside, until it has been checked."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from fanin.errors import BatchNotFound, InvalidRequest

_DIGITS: Final = 16
"""Of the largest batch id, which is below 2^53; ordinals and numbers of words have no more."""


def id_in(request: Request, name: str = "batch_id") -> int:
    """The id, or ordinal, that a segment of the path names.

    Raises:
        BatchNotFound: it is not a number that an id can be.
    """
    text: str = request.path_params[name]
    if not _is_number(text):
        raise BatchNotFound(f"{text[:32]!r} is not an id; ids are numbers of up to {_DIGITS} digits")
    return int(text)


def natural(what: str, text: str | None) -> int | None:
    """The whole number that a text is; None if there is none.

    Args:
        what: the number, as an error names it.
        text: a parameter, or a segment of the path.

    Raises:
        InvalidRequest: it is not a whole number from 0 on.
    """
    if not text:
        return None
    if not _is_number(text):
        raise InvalidRequest(f"{what} is a whole number, not {text[:32]!r}")
    return int(text)


def cursor_in(request: Request) -> str | None:
    """Where the page of a listing begins; None at its beginning."""
    return request.query_params.get("cursor") or None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS
