"""The HTTP status of each error that reaches callers, for the service and for the library."""

from typing import Final

from fanin.errors import (
    AccessDenied,
    BatchClosed,
    BatchGone,
    BatchNotFound,
    BufferNotFound,
    ChannelRefused,
    CorrelationIdAlive,
    FailureNotFound,
    FaninError,
    IdempotencyKeyReused,
    InvalidItemId,
    InvalidRequest,
    ItemDone,
    ItemHasChild,
    KeyNotFound,
    LimitReached,
    MaxItemsReached,
    NotRegistered,
    OutcomeUnknown,
    RequestTooLarge,
    RouteNotFound,
    ServiceUnavailable,
    Throttled,
    UnsupportedMediaType,
)

INTERNAL_ERROR: Final = "internal-error"
"""Code of the problem that stands for every error of the service's own."""

STATUS: Final[dict[type[FaninError], int]] = {
    InvalidRequest: 400,
    InvalidItemId: 400,
    ChannelRefused: 400,
    AccessDenied: 403,
    BatchNotFound: 404,
    FailureNotFound: 404,
    KeyNotFound: 404,
    BufferNotFound: 404,
    NotRegistered: 404,
    RouteNotFound: 404,
    IdempotencyKeyReused: 409,
    ItemHasChild: 409,
    CorrelationIdAlive: 409,
    BatchClosed: 409,
    ItemDone: 409,
    MaxItemsReached: 409,
    OutcomeUnknown: 409,
    BatchGone: 410,
    RequestTooLarge: 413,
    UnsupportedMediaType: 415,
    LimitReached: 429,
    Throttled: 503,
    ServiceUnavailable: 503,
}
"""The status of each error. An unknown outcome is a 409, because clients repeat a 5xx by themselves.

An error that is not here is the service's own fault: 500, without its message."""
