"""What stands in the path of an address: text from outside, until it has been checked."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from fanin.errors import BatchNotFound

_DIGITS: Final = 16
"""Of the largest batch id: ids are below 2^53."""


def id_in(request: Request, name: str = "batch_id") -> int:
    """The id, or ordinal, that a segment of the path names.

    Raises:
        BatchNotFound: it is not a number that an id can be.
    """
    text: str = request.path_params[name]
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise BatchNotFound(f"{text[:32]!r} is not an id; ids are numbers of up to {_DIGITS} digits")
    return int(text)
