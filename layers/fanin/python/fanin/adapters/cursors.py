"""Cursors: where a listing goes on, as opaque text that only the same listing accepts."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection
from typing import Final

from fanin.errors import InvalidRequest

_LONGEST: Final = 256
_HIGHEST: Final = 2**53


def encode(listing: str, *position: int) -> str:
    """Make the cursor of a position within the named listing."""
    text = json.dumps([listing, *position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(listing: str, cursor: str, sizes: Collection[int]) -> tuple[int, ...]:
    """Read the position back.

    Args:
        listing: the name it was made with.
        cursor: text from a caller, so anything at all.
        sizes: how many numbers a position of this listing may have.

    Raises:
        InvalidRequest: it is no cursor of this listing.
    """
    try:
        if len(cursor) > _LONGEST:
            raise ValueError(cursor)  # noqa: TRY301
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        name, *position = json.loads(text)
    except (ValueError, TypeError):
        name, position = None, []
    genuine = name == listing and len(position) in sizes
    if not genuine or not all(type(part) is int and 0 <= part < _HIGHEST for part in position):
        raise InvalidRequest(f"cursor {cursor[:64]!r} is not one that this listing gave; start without one")
    return tuple(position)
