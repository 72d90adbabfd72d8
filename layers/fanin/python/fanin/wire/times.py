"""Points in time: milliseconds since the epoch, written as RFC 3339."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from fanin.errors import InvalidRequest

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_TIME: Final = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"


def encode_time(ms: int) -> str:
    """Write milliseconds since the epoch as ``2026-11-21T09:40:00.123Z``."""
    moment = (_EPOCH + ms * _MILLISECOND).isoformat(timespec="milliseconds")
    return moment.removesuffix("+00:00") + "Z"


def decode_time(text: str) -> int:
    """Read an RFC 3339 timestamp, of any offset, as milliseconds since the epoch.

    Raises:
        InvalidRequest: the text is not a timestamp.
    """
    if re.fullmatch(_TIME, text, re.ASCII):
        try:
            return (datetime.fromisoformat(text.upper()) - _EPOCH) // _MILLISECOND
        except (ValueError, OverflowError):
            pass  # the form is right, the date is not: the thirtieth of February
    raise InvalidRequest(f"{text[:64]!r} is not an RFC 3339 timestamp such as 2026-11-21T09:40:00.123Z")
