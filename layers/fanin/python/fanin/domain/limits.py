"""Limits of what one call may carry, and chunks that fit one request each.

All limits are defined here, and checked before anything is written.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Final, TypeVar

from fanin.errors import InvalidRequest, RequestTooLarge

MAX_ERRORS: Final = 100  # of one selection of failures
MAX_ERRORS_BYTES: Final = 32 * 1024  # of all of them together; they stand in the record of a redrive
MAX_SELECTED_RANGES: Final = 100  # of a redrive, of a release
MAX_MARKS: Final = 10_000
"""Weight of the marks of one request, of which an item id is 1 and a failure, a range or a count 10."""
MAX_PAGE: Final = 1_000
MAX_ROWS: Final = 500
"""Rows that one call may read which looks for something in a batch, or lists; a cursor leads on.

So no call costs much more than another, however large a batch somebody has made with one write.
"""
MAX_ROWS_DIRECT: Final = 10_000
"""The same for a process that uses the tables itself, and pays for its own reads."""
MAX_USER_KEY: Final = 256
MAX_IDEMPOTENCY_KEY: Final = 256
MAX_CORRELATION_ID: Final = 128
MAX_REASON: Final = 1_024
MAX_ATTEMPTS: Final = 2**31 - 1  # receives of a message, as failures and failed attempts name them
MAX_KEPT_INLINE: Final = 8 * 1024
"""Bytes of a failed message or a result, as JSON, that are kept in a row; what is larger is in the bucket."""
MAX_KEPT_IN_ROW: Final = 350 * 1024
"""Bytes of a failed item's message or a result, as JSON, that a row can hold where there is no bucket."""
MAX_FAILED_MESSAGES: Final = 4 * 1024 * 1024
"""Bytes of the messages of one request that fails items, as JSON.

Lambda takes 6 MB of a synchronous call, and the event escapes the quotation marks of the body once more.
"""
MAX_RESULT: Final = 1024 * 1024
"""Bytes of the result of an item, as JSON."""
MAX_RECIPIENTS: Final = 100_000
MAX_REPLIES: Final = 100
MAX_REPLY: Final = 200 * 1024  # bytes of JSON, of a payload or of a scatter's message
MAX_CLAIM: Final = 5 * 1024**3
MAX_ATTRIBUTES: Final = 6
MIN_TIMEOUT: Final = 5
MAX_TIMEOUT: Final = 86_400
MAX_RETRIES: Final = 10
MAX_METADATA: Final = 16
MAX_METADATA_KEY: Final = 64
MAX_METADATA_VALUE: Final = 256
MAX_LIMIT: Final = 1_000_000
MIN_LIFETIME: Final = 60
MAX_LIFETIME: Final = 365 * 86_400
MIN_IDLE_TTL: Final = 60
MIN_STALL_AFTER: Final = 10
MAX_NOTES: Final = 1_000  # failed attempts of one call
NAME: Final = "[A-Za-z0-9][A-Za-z0-9._:-]*"
MAX_NAME: Final = 128  # of a topic, a registration
MAX_ROUTE: Final = 40
MAX_CHANNEL: Final = 1_024
MIN_LEASE: Final = 10
MAX_LEASE: Final = 30 * 86_400
MAX_SOURCE: Final = 256
MAX_DETAIL_TYPE: Final = 128
MAX_PATTERN: Final = 2_048  # characters of JSON
BUFFER_NAME: Final = "[A-Za-z0-9][A-Za-z0-9_-]{0,47}"
MAX_WORK: Final = 10  # payloads of a put, of a take
MAX_PAYLOAD: Final = 200 * 1024  # bytes of the payloads of one put
MAX_WAIT: Final = 20  # seconds
MAX_VISIBILITY_TIMEOUT: Final = 43_200  # seconds
MAX_RECEIPTS: Final = 100
MAX_CLAIMS: Final = 1_000  # envelopes of one call
DEFAULT_ENVELOPE_LEASE: Final = 30  # seconds
MAX_ENVELOPE_LEASE: Final = 43_200  # seconds; the longest visibility timeout of SQS
MAX_CONTENT_TYPE: Final = 1_024  # of an envelope
MAX_ENTRY: Final = 255 * 1024
"""Bytes of an event; EventBridge took 256 KB for long, and its targets get an envelope too."""
MAX_EVENT: Final = 200 * 1024  # bytes of JSON; a message carries the event with its envelope
MAX_MESSAGE_ATTRIBUTES: Final = 9  # of a kept message: SQS takes ten, and the item id is one
MAX_MESSAGE_ATTRIBUTE_NAME: Final = 256
MAX_MESSAGE_ATTRIBUTE_TYPE: Final = 256
MAX_MESSAGE_GROUP: Final = 128
MAX_QUEUE_MESSAGES: Final = 10  # of one request to SQS
MAX_QUEUE_BYTES: Final = 256 * 1024
"""Bytes of a message, or of all messages of one request, that every queue takes.

SQS itself has accepted 1 MiB since August 2025, but a queue's MaximumMessageSize may still be at this, the
older limit.
"""
MAX_SQS_BYTES: Final = 1024 * 1024
"""Bytes of a message, or of all messages of one request, that SQS takes at all."""
UNSENDABLE: Final = "[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Characters outside of XML 1.0: depending on its age, SQS refuses them, or replaces them by U+FFFD.

See "SendMessage", Amazon SQS API Reference. Its first use compiles it, which takes as long as many imports.
"""


def at_most(what: str, values: Sized, most: int) -> None:
    """Refuse a collection of more than ``most`` values.

    Raises:
        RequestTooLarge: there are more than ``most`` values.
    """
    if len(values) > most:
        raise RequestTooLarge(f"{len(values)} {what} in one call; send at most {most}")


def whole(what: str, value: object, low: int, high: int) -> int:
    """Return the value, if it is a whole number from ``low`` to ``high``.

    Raises:
        InvalidRequest: it is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidRequest(f"{what} must be a whole number from {low} to {high}, not {shown(value)}")
    return value


def flag(what: str, value: object) -> bool:
    """Return the value, if it is True or False.

    Raises:
        InvalidRequest: it is anything else.
    """
    if not isinstance(value, bool):
        raise InvalidRequest(f"{what} must be true or false, not {shown(value)}")
    return value


def percent(what: str, value: object) -> float:
    """Return the value, if it is a number from 0 to 100.

    Raises:
        InvalidRequest: it is anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:  # noqa: PLR2004
        raise InvalidRequest(f"{what} must be a number from 0 to 100, not {shown(value)}")
    return value


TURNING: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that turn the direction of a text, for a class of a pattern: a name with them can look like
another. See "Unicode Bidirectional Algorithm", UAX 9."""


def shown(value: object) -> str:
    """The beginning of a caller's value, for the message that refuses it."""
    try:
        return repr(value[:32]) if isinstance(value, str) else str(value)[:32]
    except ValueError:  # Python does not write a number of more than 4,300 digits
        return "a number of thousands of digits"


def text(what: str, value: object, most: int, *, least: int = 0) -> str:
    """Return the value, if it is text of ``least`` to ``most`` characters that UTF-8 can carry.

    Raises:
        InvalidRequest: it is anything else.
    """
    if not isinstance(value, str) or not least <= len(value) <= most:
        raise InvalidRequest(f"{what} must be text of {least} to {most} characters")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{what} has one half of a surrogate pair, which cannot be sent; leave it out"
        ) from error
    return value


def sendable(what: str, value: str) -> str:
    """Return the text, if a message of SQS can carry each of its characters as it is.

    Raises:
        InvalidRequest: it has a character that SQS refuses or replaces.
    """
    if found := re.search(UNSENDABLE, value):
        raise InvalidRequest(
            f"{what} has U+{ord(found[0]):04X} at {found.start()}, which no SQS message may carry; encode"
            " it, for example as JSON or base64"
        )
    return value


def cleaned(value: str) -> str:
    """The text, with a question mark for each character that a message of SQS cannot carry."""
    return re.sub(UNSENDABLE, "?", value)


def pairs(what: str, values: Mapping[str, object]) -> None:
    """Refuse a map of strings that is larger than the metadata of a batch may be.

    Raises:
        InvalidRequest: it is no map, there are too many pairs, or a key or value is not text of its length.
    """
    if not isinstance(values, Mapping):
        raise InvalidRequest(f"{what} must be a map of texts, not {shown(values)}")
    if len(values) > MAX_METADATA:
        raise InvalidRequest(f"{what} may have at most {MAX_METADATA} pairs")
    for key, value in values.items():
        text(f"a key of {what}", key, MAX_METADATA_KEY, least=1)
        text(f"{what}[{key!r}]", value, MAX_METADATA_VALUE)


def name(what: str, value: object, most: int) -> str:
    """Return the value, if it is a name: letters, digits and ``._:-``, a letter or digit first.

    Raises:
        InvalidRequest: it is anything else.
    """
    if not isinstance(value, str) or len(value) > most or not re.fullmatch(NAME, value, re.ASCII):
        raise InvalidRequest(
            f"{what} must be 1 to {most} letters, digits and . _ : - and begin with a letter or digit"
        )
    return value


T = TypeVar("T")


def chunks(
    stream: Iterable[T], *, max_items: int, size_of: Callable[[T], int] | None = None, max_bytes: int = 0
) -> Iterator[list[T]]:
    """Cut a stream into lists that fit one request each, reading at most one item ahead.

        >>> list(chunks("abcde", max_items=2))
        [['a', 'b'], ['c', 'd'], ['e']]
        >>> list(chunks(["long", "a", "b"], max_items=2, size_of=len, max_bytes=3))
        [['long'], ['a', 'b']]

    Args:
        stream: any iterable, also an endless one.
        max_items: most items in a chunk.
        size_of: gives the size of an item in bytes; without it only the number of items counts.
        max_bytes: most bytes in a chunk. A larger item is a chunk of its own; sending it fails.

    Yields:
        Non-empty lists, in the stream's order.
    """
    chunk: list[T] = []
    filled = 0
    for item in stream:
        size = size_of(item) if size_of else 0
        if chunk and (len(chunk) == max_items or (size_of and filled + size > max_bytes)):
            yield chunk
            chunk, filled = [], 0
        chunk.append(item)
        filled += size
    if chunk:
        yield chunk


def counted(count: int, one: str, many: str = "") -> str:
    """A count, and what it counts.

    Args:
        count: how many.
        one: the words that go with 1.
        many: those that go with any other count, if that is not ``one`` with an s.

    >>> counted(1, "item"), counted(1_200, "item"), counted(2, "batch", "batches")
    ('1 item', '1,200 items', '2 batches')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
