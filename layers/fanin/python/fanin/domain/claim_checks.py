"""Claim checks: where to upload a payload that is too large for a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CONTENT_TYPE: Final = "application/octet-stream"
"""Content type of an uploaded payload, unless the recipient names one."""


@dataclass(frozen=True, slots=True)
class ClaimCheckRequest:
    """A request to upload a payload that is too large for a reply.

    Attributes:
        item: the item id of the message that is replied to.
        size: bytes.
        content_type: of the payload.
    """

    item: str
    size: int
    content_type: str = CONTENT_TYPE


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """Where to upload a payload, before the reply names it.

    Attributes:
        key: the reply names it as its ``claim``.
        url: accepts a PUT of the payload, with ``headers``.
        headers: to send with the payload.
        expires_at: when the URL expires.
    """

    key: str
    url: str
    headers: Mapping[str, str]
    expires_at: int
