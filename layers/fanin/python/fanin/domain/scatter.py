"""Scatter-gather: requests, replies and progress.

A scatter is an exact batch whose items are its recipients, in order: the ordinal of an item is the number of
its recipient. All ``*_at`` values are milliseconds since the epoch, durations seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanin.domain.batch import Batch, State
from fanin.domain.targets import Target

TIMEOUT: Final = 120
"""Seconds until the message is sent again to recipients that have not replied, or they are given up."""
MAX_RETRIES: Final = 2
"""How often the message is sent again."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient of the message.

    Attributes:
        name: for people; need not be unique.
        channel: queue URL; in a request also an ARN, or ``topic/name`` of a registration.
    """

    name: str
    channel: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """A request to send one message to many recipients, and to gather their replies.

    Attributes:
        body: of the message, text.
        recipients: who gets the message; alternatively, ``topic``.
        topic: everyone who is registered under it when the scatter starts.
        where: attributes that a registration of the topic must have.
        type: of the message, in its attribute ``fanin-type``.
        attributes: additional message attributes, at most six.
        correlation_id: chosen by the caller, and not in use by a scatter that has not ended; None lets the
            service choose.
        timeout: seconds until the message is sent again to those who have not replied, or they are given up.
        max_retries: how often the message is sent again.
        quorum: how many replies are enough: a number, or a share of the recipients between 0 and 1. None for
            all.
        user_key: the caller's own name for it, returned with its events.
        metadata: small map of strings, returned with events.
        on_end: who is told of the end; up to five targets.
        totals: names of up to four whole numbers that replies bring, and that are summed up.
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
    on_end: Sequence[Target] = ()
    totals: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Scattered:
    """A scatter, and how far it is.

    Attributes:
        batch: the batch it stands on; ``items`` is the number of recipients.
        correlation_id: in every message and event of it.
        received: recipients that replied.
        failed: recipients that could not be reached, or that gave up on the message.
        retries: how often the message was sent again so far.
        max_retries: how often it is sent again at most.
        quorum: how many replies are enough; None for all.
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
        """Number of recipients; 0 while they are being listed."""
        return self.batch.items

    @property
    def missing(self) -> int:
        """Recipients that neither replied nor failed."""
        return self.batch.items - self.received - self.failed

    @property
    def starting(self) -> bool:
        """Whether the recipients of a large topic are still being listed, so that their number is unknown."""
        return self.batch.state is State.OPEN

    @property
    def ready(self) -> bool:
        """Whether the scatter has ended."""
        return self.batch.state.terminal


@dataclass(frozen=True, slots=True)
class Reply:
    """A recipient's reply.

    Attributes:
        item: the item id that the message carried.
        payload: any JSON value of up to 200 KB; alternatively, a claim.
        claim: key of an uploaded payload, see ``ClaimCheck``.
        totals: what it adds to the totals of the scatter, if it is the recipient's first.
    """

    item: str
    payload: Any = None
    claim: str | None = None
    totals: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplyReceipt:
    """What became of a reply.

    Attributes:
        item: the item id.
        batch_id: the scatter.
        state: its state as last read.
        first: this reply is the one that counts.
        different: an earlier reply of the recipient has another payload.
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
        url: where it can be downloaded, for 15 minutes.
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
        cursor: gets the next page; None at the end.
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
