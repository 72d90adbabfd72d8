"""Failures: the kept message, what several have in common, and how many a batch tolerates."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from fanin.domain import limits
from fanin.domain.ids import MAX_ITEMS
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


def reason_of(error: BaseException) -> str:
    """Why an item failed, as text that is kept: the type of an error, and what it says."""
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return said[: limits.MAX_REASON].encode(errors="replace").decode()


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
        if not isinstance(attribute, MessageAttribute):
            raise InvalidRequest(f"attribute {name!r} must be a MessageAttribute(data_type, value)")
        kind, most = attribute.data_type, limits.MAX_MESSAGE_ATTRIBUTE_TYPE
        limits.text(f"the type of attribute {name!r}", kind, most, least=1)
        if kind.partition(".")[0] != "Binary":
            limits.text(f"attribute {name!r} of type {kind}", attribute.value, limits.MAX_FAILED_MESSAGES)
        elif not isinstance(attribute.value, bytes):
            raise InvalidRequest(f"attribute {name!r} is of type {kind}, so its value must be bytes")
    return message


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


MIN_SAMPLE: Final = 100
"""Items that are done before a share of them says something, unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The failures up to which a batch goes on; beyond them it ends as ``cancelled``, with a cause.

    At least one of ``count`` and ``percent`` is given. Where both are, either of them ends the batch.
    Failures are items that have failed, and items that are held.

    Attributes:
        count: most items that may fail.
        percent: most items that may fail of a hundred that are done, failed and held ones included.
        min_sample: how many items must be done before ``percent`` counts; by default 100.
    """

    count: int | None = None
    percent: float | None = None
    min_sample: int | None = None

    @property
    def sample(self) -> int:
        """How many items must be done before ``percent`` counts."""
        return MIN_SAMPLE if self.min_sample is None else self.min_sample

    @property
    def in_words(self) -> str:
        """What is tolerated, for people."""
        parts = [] if self.count is None else [limits.counted(self.count, "failure")]
        if self.percent is not None:
            parts.append(f"{self.percent:g}% of what is done, from {limits.counted(self.sample, 'item')} on")
        return ", and ".join(parts)

    def check(self) -> None:
        """Refuse a tolerance that says nothing, or contradicts itself.

        Raises:
            InvalidRequest: a number is out of range, or neither a count nor a share is given.
        """
        if self.count is None and self.percent is None:
            raise InvalidRequest("tolerated_failures needs a count, a percent, or both; it has neither")
        if self.count is not None:
            limits.whole("tolerated_failures.count", self.count, 0, MAX_ITEMS)
        if self.percent is not None:
            limits.percent("tolerated_failures.percent", self.percent)
        if self.min_sample is not None:
            limits.whole("tolerated_failures.min_sample", self.min_sample, 1, MAX_ITEMS)
            if self.percent is None:
                raise InvalidRequest(
                    "tolerated_failures.min_sample belongs to a percent; give a percent too, or leave it out"
                )

    def exceeded(self, failed: int, *, done_min: int, done_max: int) -> bool:
        """Whether so many failures are too many for certain.

        Args:
            failed: at least so many have failed.
            done_min: at least so many are done, failed ones included.
            done_max: at most so many are.
        """
        if self.count is not None and failed > self.count:
            return True
        return self.percent is not None and done_min >= self.sample and failed > self._share(done_max)

    def covers(self, failed: int, *, of: int) -> bool:
        """Whether so many failures are within the tolerance of a batch that has ended with so many items."""
        within = self.percent is None or failed <= self._share(of)
        return within and (self.count is None or failed <= self.count)

    def allowed(self, done: int) -> int:
        """The most failures that are within the tolerance when so many items are done."""
        bounds = [] if self.count is None else [self.count]
        if self.percent is not None:
            bounds.append(math.floor(self._share(max(done, self.sample))))
        return min(bounds)

    def _share(self, done: int) -> Fraction:
        # Of the decimal text: 0.1 percent of 1,000 is 1, and no more.
        return Fraction(str(self.percent)) * done / 100
