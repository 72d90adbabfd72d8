"""Scatter-gather: what a caller says, what recipients answer, and how far it is.

A scatter is an exact batch whose items are its recipients, in order: the ordinal of an item is the number of
its recipient. All ``*_at`` values are milliseconds since the epoch, durations seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanin.domain.batch import Batch, State

TIMEOUT: Final = 120
"""Seconds until what is missing is sent again, or given up."""
MAX_RETRIES: Final = 2
"""How often it is sent again."""
CONTENT_TYPE: Final = "application/octet-stream"
"""Of an uploaded payload, where nobody says."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """Who gets the message.

    Attributes:
        name: what people call it; need not be unique.
        channel: queue URL; in a request also an ARN, or ``topic/name`` of a registration.
    """

    name: str
    channel: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """What a caller says to send one message to many and gather the replies.

    Attributes:
        body: of the message, text.
        recipients: whom to ask; or else ``topic``.
        topic: whoever is registered under it when the scatter starts.
        where: attributes that a registration of the topic must have.
        type: of the message, in its attribute ``fanin-type``.
        attributes: more message attributes, at most six.
        correlation_id: the caller's own, which no living scatter has; None for one that is made.
        timeout: seconds until what is missing is sent again, or given up.
        max_retries: how often it is sent again.
        quorum: enough replies: a number of them, or a share between 0 and 1 of the recipients. None for all.
        user_key: the caller's own name for it, returned with its events.
        metadata: small map of strings, returned with events.
    """

    body: str
    recipients: Sequence[Recipient] = ()
    topic: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    type: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    correlation_id: str | None = None
    timeout: int = TIMEOUT
    max_retries: int = MAX_RETRIES
    quorum: int | float | None = None
    user_key: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scattered:
    """A scatter and how far it is.

    Attributes:
        batch: the batch it stands on; ``items`` is the number of recipients.
        correlation_id: in every message and event of it.
        received: recipients that replied.
        failed: recipients that could not be reached, or whose message died.
        retries: how often the missing were sent to again.
        max_retries: how often they are at most.
        quorum: replies that are enough; None for all.
    """

    batch: Batch
    correlation_id: str
    received: int
    failed: int
    retries: int
    max_retries: int
    quorum: int | None

    @property
    def recipients(self) -> int:
        """How many there are; 0 while they are being listed."""
        return self.batch.items

    @property
    def missing(self) -> int:
        """Recipients that neither replied nor failed."""
        return self.batch.items - self.received - self.failed

    @property
    def starting(self) -> bool:
        """Whether the recipients of a large topic are still being listed: their number is not known yet."""
        return self.batch.state is State.OPEN

    @property
    def ready(self) -> bool:
        """Whether nothing more is waited for."""
        return self.batch.state.terminal


@dataclass(frozen=True, slots=True)
class Reply:
    """What a recipient answers.

    Attributes:
        item: the item id that its message carried.
        payload: any JSON value of up to 200 KB; or else a claim.
        claim: key of a payload that was uploaded, see ``ClaimCheck``.
    """

    item: str
    payload: Any = None
    claim: str | None = None


@dataclass(frozen=True, slots=True)
class ReplyReceipt:
    """What became of a reply.

    Attributes:
        item: the item id.
        batch_id: the scatter.
        state: its state as last seen.
        first: this reply is the one that counts.
        different: another reply came before it, and said something else.
        late: the scatter had already ended without it.
    """

    item: str
    batch_id: int
    state: State
    first: bool = False
    different: bool = False
    late: bool = False

    @property
    def duplicate(self) -> bool:
        """Whether the recipient had replied, or failed, before."""
        return not self.first and not self.late


@dataclass(frozen=True, slots=True)
class GatheredReply:
    """A reply that counts.

    Attributes:
        ordinal: number of the recipient.
        name: the recipient's name.
        replied_at: when the reply came.
        payload: the JSON value; None if it was claimed.
        claim: key of the uploaded payload.
        url: where it can be downloaded for a quarter of an hour.
    """

    ordinal: int
    name: str
    replied_at: int
    payload: Any = None
    claim: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """One page of replies, in the order of the recipients.

    Attributes:
        replies: ascending by ordinal.
        cursor: ask with it for the next page; None at the end.
    """

    replies: tuple[GatheredReply, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class MissingRecipient:
    """A recipient that has neither replied nor failed.

    Attributes:
        ordinal: number of the recipient.
        name: the recipient's name.
    """

    ordinal: int
    name: str


@dataclass(frozen=True, slots=True)
class MissingRecipients:
    """One page of missing recipients.

    Attributes:
        recipients: ascending by ordinal.
        cursor: ask with it for the next page; None at the end.
    """

    recipients: tuple[MissingRecipient, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class FailedRecipient:
    """A recipient that failed: it could not be reached, or its message died.

    Attributes:
        ordinal: number of the recipient.
        name: the recipient's name.
        reason: why it failed.
    """

    ordinal: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class FailedRecipients:
    """One page of failed recipients.

    Attributes:
        recipients: ascending by ordinal.
        cursor: ask with it for the next page; None at the end.
    """

    recipients: tuple[FailedRecipient, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimCheckRequest:
    """The wish to upload a payload that is too large for a reply.

    Attributes:
        item: the item id that is replied to.
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
        key: what the reply gives as its ``claim``.
        url: to PUT the payload to, with the headers.
        headers: to send with it.
        expires_at: until when.
    """

    key: str
    url: str
    headers: Mapping[str, str]
    expires_at: int
