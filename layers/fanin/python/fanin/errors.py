"""Every error fanin raises, in one tree.

    FaninError
    ├── InvalidRequest          the request is malformed; fix it and send it again
    │   ├── InvalidItemId       an item id is malformed, forged or out of range
    │   ├── RequestTooLarge     more ids, bytes or items than one call may carry
    │   ├── UnsupportedMediaType  the body of a request is not said to be JSON
    │   ├── EnvelopesRefused    a transport can never send some envelopes of a frame
    │   ├── IdempotencyKeyReused  the key was used for another request
    │   └── ItemHasChild        the parent item has another child batch already
    ├── BatchNotFound           the batch does not exist, or its row was deleted
    ├── BatchGone               the batch was removed, or is past its lifetime
    ├── FailureNotFound         the item has not failed
    ├── KeyNotFound             no item of the batch has the key
    ├── BufferNotFound          the buffer does not exist
    ├── BatchClosed             the batch takes no more items
    ├── ItemDone                an item that is done adds nothing more to its batch
    ├── ChannelRefused          the queue does not exist, or does not carry the tag fanin:channel
    ├── NotRegistered           no instance is registered by that name, or its lease is over
    ├── RouteNotFound           the route does not exist
    ├── JobRunNotFound          the run of a Spark job does not exist
    ├── CorrelationIdAlive      a scatter with that correlation id has not ended yet
    ├── LimitReached            a bounded batch or the bus's rules are full: try again later
    ├── BufferFull              a repeat buffer is full: the receivers lag behind, send more slowly
    ├── Throttled               AWS throttles, or other calls change the same row: try again later
    ├── PartlyMarked            some marks of the call are not settled: it says which, and why
    ├── AccessDenied            the caller's credentials do not allow this call
    ├── ServiceUnavailable      the service did not answer, or answered with a fault
    ├── OutcomeUnknown          the call may have taken effect, and a repeat would take effect again
    ├── NotConfigured           a setting of this process is missing
    ├── Unreachable             no network leads from this process to a service that it needs
    ├── TargetRefused           a target of a batch will never take what it is told
    ├── SendFailed              a queue refused some of a producer's messages
    ├── ExportDamaged           an export of a table does not match its manifest
    ├── TooManyRejects          too many rows of a dataset cannot be used; nothing was done
    ├── ItemFailed              raised by a consumer: this item failed, do not retry it
    │   └── MaxItemsReached     the batch has as many items as it takes
    └── LocalStackFailed        the local stack could not be started or deployed

Each class carries a stable ``code`` (its name in kebab-case, the last part of the problem's ``type``), and
``retryable``: whether the same call may succeed later. Messages say what to do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from fanin.domain.marks import Mark, Receipt


STATUS: Final[dict[type[FaninError], int]] = {}
"""The status of each error that reaches callers; others are a 500, without their message."""


class FaninError(Exception):
    """The root of the tree: catch it to catch every error that fanin raises on purpose.

    Attributes:
        code: stable, kebab-case name of the error, the same in the API, the library and the logs.
        status: its HTTP status; None for an error that never answers a call, and would be the service's own
            fault there.
        retryable: True when the same call, repeated later, may succeed.
        retry_after: seconds to wait before repeating, where they are known.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int | None] = None
    retryable: bool = False

    def __init_subclass__(cls, *, status: int | None = None, retryable: bool = False) -> None:
        super().__init_subclass__()
        if cls.__module__ == __name__:  # errors of other modules have the code of their base
            cls.code = re.sub(r"\B(?=[A-Z])", "-", cls.__name__).lower()
        if status is not None:
            cls.status = STATUS[cls] = status
        if retryable:
            cls.retryable = True

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class InvalidRequest(FaninError, status=400): ...


class InvalidItemId(InvalidRequest, status=400): ...


class RequestTooLarge(InvalidRequest, status=413): ...


class UnsupportedMediaType(InvalidRequest, status=415):
    """The body of a request is said to be something else than JSON."""


class EnvelopesRefused(InvalidRequest):
    """Raised by a transport that can never send some envelopes; it has tried to send the others.

    Attributes:
        reasons: index of the envelope in its frame → why it can never be sent.
    """

    def __init__(self, message: str, *, reasons: Mapping[int, str]) -> None:
        super().__init__(message)
        self.reasons = dict(reasons)


class IdempotencyKeyReused(InvalidRequest, status=409): ...


class ItemHasChild(InvalidRequest, status=409):
    """The parent item has a child batch already.

    Attributes:
        child: id of that batch.
    """

    def __init__(self, message: str, *, child: int, retry_after: int | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.child = child


class BatchNotFound(FaninError, status=404): ...


class BatchGone(FaninError, status=410): ...


GONE: Final = (BatchNotFound, BatchGone)
"""Errors of a batch that does not exist, or no longer."""
REFUSALS: Final = (InvalidRequest, *GONE)
"""Errors that blame the content of a call: an id is malformed or forged, or its batch does not exist."""


class FailureNotFound(FaninError, status=404): ...


class KeyNotFound(FaninError, status=404): ...


class BufferNotFound(FaninError, status=404): ...


class BatchClosed(FaninError, status=409): ...


class ItemDone(FaninError, status=409):
    """An item that is done adds nothing more to its batch.

    An earlier delivery of its message has added all. A consumer that lets this error of
    ``message.add_items`` pass drops the message.

    Attributes:
        item: the item of the message in hand; None if the error is not of ``message.add_items``.
    """

    item: str | None = None


class ChannelRefused(FaninError, status=400): ...


class NotRegistered(FaninError, status=404): ...


class RouteNotFound(FaninError, status=404): ...


class JobRunNotFound(FaninError): ...


class CorrelationIdAlive(FaninError, status=409): ...


class LimitReached(FaninError, status=429, retryable=True): ...


class BufferFull(FaninError, retryable=True): ...


class Throttled(FaninError, status=503, retryable=True): ...


class PartlyMarked(FaninError):
    """Some of the marks of a call are not settled; all others are.

    Attributes:
        receipts: of the items that are marked, one for each batch.
        refused: marks that will never be taken, each with its error: do not repeat them.
        left: marks for which there was no capacity or no time, each with its error: repeat them. If the
            error is ``OutcomeUnknown``, repeat a mark only if its batch is exact.
        unknown: marks that an estimated batch may have counted, each with its error: do not repeat them.
        retryable: whether all marks are left, so that the call may be repeated as it was.
    """

    def __init__(
        self,
        message: str,
        *,
        receipts: Sequence[Receipt] = (),
        refused: Sequence[tuple[Mark, FaninError]] = (),
        left: Sequence[tuple[Mark, FaninError]] = (),
        unknown: Sequence[tuple[Mark, FaninError]] = (),
    ) -> None:
        super().__init__(message)
        self.receipts = list(receipts)
        self.refused = list(refused)
        self.left = list(left)
        self.unknown = list(unknown)
        others = self.receipts or self.refused or self.unknown
        self.retryable = not others and all(error.retryable for _, error in self.left)


class AccessDenied(FaninError, status=403): ...


class ServiceUnavailable(FaninError, status=503, retryable=True): ...


class OutcomeUnknown(FaninError, status=409):  # clients repeat a 5xx by themselves
    """The answer to a call was lost, and a repeat would take effect again, as that of a count does.

    Nobody has repeated it. Find out whether it took effect, or accept that it may take effect twice.
    """


class NotConfigured(FaninError): ...


class Unreachable(FaninError): ...


class TargetRefused(FaninError):
    """A target of a batch will never take what it is told, however often it is repeated."""


class SendFailed(FaninError):
    """Some messages of a producer did not reach their queue; those that were sent before did.

    Attributes:
        items: item id → why the queue refused its message.
        sent: how many messages the queue accepted.
        unsent: messages that were read and have no item, because the refused ones keep the batch full.
            Whatever came after them was not read.
    """

    def __init__(
        self, message: str, *, items: Mapping[str, str], sent: int = 0, unsent: Sequence[object] = ()
    ) -> None:
        super().__init__(message)
        self.items = dict(items)
        self.sent = sent
        self.unsent = list(unsent)


class ExportDamaged(FaninError):
    """An export that a job reads is unfinished, has another format, or has lost rows."""


class TooManyRejects(FaninError):
    """Too many rows of a dataset cannot be used, so a job has done nothing with the others either.

    Attributes:
        rejects: reason → rows that are left out.
        rows: all rows of the dataset.
    """

    def __init__(self, message: str, *, rejects: Mapping[str, int], rows: int) -> None:
        super().__init__(message)
        self.rejects, self.rows = dict(rejects), rows


class ItemFailed(FaninError):
    """Raised by a consumer to mark its item as failed: the message is not delivered again.

    The text of the error becomes the reason that the batch lists.
    """

    @property
    def reason(self) -> str:
        """The text of the error, with what cannot be sent (half a surrogate pair) replaced by ``?``."""
        return str(self).encode(errors="replace").decode()


class MaxItemsReached(ItemFailed, status=409):
    """The batch has as many items as it takes, so nothing was added.

    In a handler that lets this error pass it fails the item: no repeat would help.
    """


class LocalStackFailed(FaninError): ...


INTERNAL_ERROR: Final = "internal-error"
"""Code of the problem that stands for every error of the service's own."""
BY_CODE: Final = {error.code: error for error in STATUS}
