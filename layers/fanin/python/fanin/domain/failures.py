"""Failures that are kept: the message of a failed item, and what failures have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from fanin.domain import limits
from fanin.errors import InvalidRequest


class Keep(StrEnum):
    """What is kept of a failed item."""

    MESSAGE = "message"
    REASON = "reason"


class MessageAttribute(NamedTuple):
    """An attribute of a message of SQS.

    Attributes:
        data_type: ``String``, ``Number`` or ``Binary``, perhaps with a label, such as ``Number.cents``.
        value: bytes if the type is binary.
    """

    data_type: str
    value: str | bytes


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """The message of a failed item, with all that it takes to send it again.

    Attributes:
        body: the text.
        attributes: its message attributes, without the one that carries the item id.
        group_id: its message group; None if it has none.
    """

    body: str = field(repr=False)
    attributes: Mapping[str, MessageAttribute] = field(default_factory=dict, repr=False)
    group_id: str | None = None


def checked_message(message: object) -> KeptMessage:
    """Return a message that can be kept and sent again.

    Raises:
        InvalidRequest: it is not a ``KeptMessage``, or a part of it is not what SQS could have delivered.
    """
    if not isinstance(message, KeptMessage):
        raise InvalidRequest(
            f"the message of a failure must be a KeptMessage, not {type(message).__name__};"
            " make one: KeptMessage(body)"
        )
    limits.text("the body of a message", message.body, limits.MAX_FAILED_MESSAGES)
    if message.group_id is not None:
        limits.text("the group of a message", message.group_id, limits.MAX_MESSAGE_GROUP, least=1)
    if len(message.attributes) > limits.MAX_MESSAGE_ATTRIBUTES:
        raise InvalidRequest(
            f"a message has {len(message.attributes)} attributes, and could not be sent again: SQS takes"
            f" {limits.MAX_MESSAGE_ATTRIBUTES} beside the item id"
        )
    for name, attribute in message.attributes.items():
        limits.text("the name of an attribute", name, limits.MAX_MESSAGE_ATTRIBUTE_NAME, least=1)
        _check_attribute(name, attribute)
    return message


def _check_attribute(name: str, attribute: object) -> None:
    if not isinstance(attribute, MessageAttribute):
        raise InvalidRequest(f"attribute {name!r} must be a MessageAttribute(data_type, value)")
    kind = limits.text(
        f"the type of attribute {name!r}", attribute.data_type, limits.MAX_MESSAGE_ATTRIBUTE_TYPE, least=1
    )
    binary = kind.partition(".")[0] == "Binary"
    if not binary:
        limits.text(f"attribute {name!r} of type {kind}", attribute.value, limits.MAX_FAILED_MESSAGES)
    elif not isinstance(attribute.value, bytes):
        raise InvalidRequest(f"attribute {name!r} is of type {kind}, so its value must be bytes")


_VARIABLE: Final = re.compile(
    r"""
    (?P<url>      [a-z][a-z0-9+.-]{0,31}://[^\s'",;)>\]]+ )
  | (?P<quoted>   "[^"]*" | (?<!\w)'[^']*'(?!\w) | `[^`]*` )
  | (?P<path>     (?<![\w.])(?:[A-Za-z]:)?(?:[\\/][\w.@%+-]+){2,}[\\/]? )
  | (?P<id>       \b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b | \b0x[0-9a-f]+\b
                | \b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b )
  | (?P<number>   \d+(?:[.,:]\d+)* )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SHOWN: Final = {"url": "<url>", "quoted": "<text>", "path": "<path>", "id": "<id>", "number": "<n>"}
MAX_ERROR: Final = 256
"""Most characters of an error; what differs only behind them is one error."""


@lru_cache(maxsize=1_024)  # a selection compares each of its errors with the reason of each failure
def error_of(reason: str) -> str:
    """What a reason has in common with others: numbers, ids, quoted texts, paths and URLs are replaced.

    >>> error_of("row 812 of '/data/in.csv' has no 'price'")
    'row <n> of <text> has no <text>'
    """
    return _VARIABLE.sub(lambda found: _SHOWN[found.lastgroup or "number"], reason)[:MAX_ERROR].strip()
