"""Every error fanin raises, in one tree.

    FaninError
    ├── InvalidRequest          the request is malformed; fix it and send it again
    │   ├── InvalidItemId       an id that is malformed, forged, of another service, or out of range
    │   ├── RequestTooLarge     more ids, bytes or items than one call may carry
    │   └── IdempotencyKeyReused  the key was used before for another request
    ├── BatchNotFound           no such batch, or it was removed after its lifetime
    ├── BatchGone               the batch is past its lifetime and about to be removed
    ├── BufferNotFound          no such buffer
    ├── BatchClosed             the batch takes no more items
    ├── ChannelRefused          no such queue, or it does not carry the tag fanin:channel
    ├── NotRegistered           nobody is registered under that name, or the lease has run out
    ├── RouteNotFound           no such route
    ├── JobRunNotFound          no such run of a Spark job
    ├── CorrelationIdAlive      a scatter of that correlation id has not ended yet
    ├── LimitReached            a bounded batch is full: try again later
    ├── BufferFull              a repeat buffer is full, because the receivers lag behind: slow down
    ├── Throttled               DynamoDB or SQS is busy: try again later
    ├── AccessDenied            the caller's credentials do not allow this call
    ├── ServiceUnavailable      the service did not answer, or answered with a fault: try again later
    ├── NotConfigured           a setting is missing on this side
    ├── SendFailed              a queue did not take some of a producer's messages
    ├── ExportDamaged           an export of a table is not what its manifest says
    ├── ItemFailed              raised by a consumer: this item has failed for good
    └── LocalStackFailed        the local stack could not be started or deployed

Each class has a stable ``code`` (the last part of the problem's ``type``), and ``retryable`` says whether the
same call may succeed later. Messages say what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class FaninError(Exception):
    """The root of the tree: catches everything that fanin raises on purpose.

    Attributes:
        code: stable, kebab-case name of the error, the same in the API, the library and the logs.
        retryable: True when the same call, repeated later, may succeed.
        retry_after: seconds to wait before repeating; None where that is not known.
    """

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class InvalidRequest(FaninError):
    code = "invalid-request"


class InvalidItemId(InvalidRequest):
    code = "invalid-item-id"


class RequestTooLarge(InvalidRequest):
    code = "request-too-large"


class IdempotencyKeyReused(InvalidRequest):
    code = "idempotency-key-reused"


class BatchNotFound(FaninError):
    code = "batch-not-found"


class BatchGone(FaninError):
    code = "batch-gone"


class BufferNotFound(FaninError):
    code = "buffer-not-found"


class BatchClosed(FaninError):
    code = "batch-closed"


class ChannelRefused(FaninError):
    code = "channel-refused"


class NotRegistered(FaninError):
    code = "not-registered"


class RouteNotFound(FaninError):
    code = "route-not-found"


class JobRunNotFound(FaninError):
    code = "job-run-not-found"


class CorrelationIdAlive(FaninError):
    code = "correlation-id-alive"


class LimitReached(FaninError):
    code = "limit-reached"
    retryable = True


class BufferFull(FaninError):
    code = "buffer-full"
    retryable = True


class Throttled(FaninError):
    code = "throttled"
    retryable = True


class AccessDenied(FaninError):
    code = "access-denied"


class ServiceUnavailable(FaninError):
    code = "service-unavailable"
    retryable = True


class NotConfigured(FaninError):
    code = "not-configured"


class SendFailed(FaninError):
    """Some messages of a producer did not reach their queue; all the others did.

    Attributes:
        items: item id → why the queue did not take its message.
    """

    code = "send-failed"

    def __init__(self, message: str, *, items: Mapping[str, str]) -> None:
        super().__init__(message)
        self.items = dict(items)


class ExportDamaged(FaninError):
    """The export that a job was given is unfinished, has another format, or lacks rows."""

    code = "export-damaged"


class ItemFailed(FaninError):
    """Raised by a consumer to mark its item failed for good; the message is not delivered again.

    The text of the error becomes the reason that the batch lists.
    """

    code = "item-failed"


class LocalStackFailed(FaninError):
    code = "local-stack-failed"
