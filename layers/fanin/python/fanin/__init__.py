"""fanin: know, exactly and at once, when a fan-out is finished.

Everything that users need is imported from here. A name's module is loaded with its first use, so that
importing the package, as every function does, is cheap. A new name goes into all three lists below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fanin.client.buffers import Producer, Taker
    from fanin.client.consuming.consumer import Consumer
    from fanin.client.consuming.handler import SqsHandler
    from fanin.client.frames.envelopes import Envelope, JsonCodec, ProtobufCodec
    from fanin.client.frames.memory_repeat_buffer import MemoryRepeatBuffer
    from fanin.client.frames.receiver import Delivery, Disposition, IdempotentReceiver
    from fanin.client.frames.repeater import Repeater
    from fanin.client.frames.sqlite_repeat_buffer import SqliteRepeatBuffer
    from fanin.client.frames.sqs_notices import queue_notices
    from fanin.client.frames.sqs_receiver import SqsReceiver
    from fanin.client.frames.sqs_transport import SqsTransport
    from fanin.client.frames.transport import Notice
    from fanin.client.https.transport import Bearer, unsigned
    from fanin.client.messages import Message, ReceivedMessage
    from fanin.client.producing.batch import TrackedBatch
    from fanin.client.tracker import Tracker
    from fanin.domain.acks import Count, Failure, ItemRange, Receipt
    from fanin.domain.batch import Batch, Kind, Mode, OnDeadline, State
    from fanin.domain.buffer import Accepted, Buffer, BufferPage, Level, Released, Work
    from fanin.domain.directory import Left, Register, Registration, Registrations
    from fanin.domain.frames import Claim, Frame, Hold, OpenFrame, Ticket
    from fanin.domain.ids import Group
    from fanin.domain.reports import (
        Batches,
        Expired,
        FailedItem,
        Failures,
        Missing,
        MissingRange,
        Progress,
        Verdict,
    )
    from fanin.domain.routing import Policy, PutEvent, PutRoute, Route, Routes, Sent
    from fanin.domain.scatter import (
        ClaimCheck,
        Gathered,
        GatheredReply,
        Recipient,
        Reply,
        ReplyReceipt,
        Scattered,
    )
    from fanin.entry.settings import Settings
    from fanin.errors import (
        AccessDenied,
        BatchClosed,
        BatchGone,
        BatchNotFound,
        BufferFull,
        BufferNotFound,
        ChannelRefused,
        CorrelationIdAlive,
        EnvelopesRefused,
        ExportDamaged,
        FaninError,
        IdempotencyKeyReused,
        InvalidItemId,
        InvalidRequest,
        ItemFailed,
        ItemHasChild,
        JobRunNotFound,
        LimitReached,
        LocalStackFailed,
        NotConfigured,
        NotRegistered,
        OutcomeUnknown,
        PartlyMarked,
        RequestTooLarge,
        RouteNotFound,
        SendFailed,
        ServiceUnavailable,
        Throttled,
    )

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "AccessDenied",
    "Batch",
    "BatchClosed",
    "BatchGone",
    "BatchNotFound",
    "Batches",
    "Bearer",
    "Buffer",
    "BufferFull",
    "BufferNotFound",
    "BufferPage",
    "ChannelRefused",
    "Claim",
    "ClaimCheck",
    "Consumer",
    "CorrelationIdAlive",
    "Count",
    "Delivery",
    "Disposition",
    "Envelope",
    "EnvelopesRefused",
    "Expired",
    "ExportDamaged",
    "FailedItem",
    "Failure",
    "Failures",
    "FaninError",
    "Frame",
    "Gathered",
    "GatheredReply",
    "Group",
    "Hold",
    "IdempotencyKeyReused",
    "IdempotentReceiver",
    "InvalidItemId",
    "InvalidRequest",
    "ItemFailed",
    "ItemHasChild",
    "ItemRange",
    "JobRunNotFound",
    "JsonCodec",
    "Kind",
    "Left",
    "Level",
    "LimitReached",
    "LocalStackFailed",
    "MemoryRepeatBuffer",
    "Message",
    "Missing",
    "MissingRange",
    "Mode",
    "NotConfigured",
    "NotRegistered",
    "Notice",
    "OnDeadline",
    "OpenFrame",
    "OutcomeUnknown",
    "PartlyMarked",
    "Policy",
    "Producer",
    "Progress",
    "ProtobufCodec",
    "PutEvent",
    "PutRoute",
    "Receipt",
    "ReceivedMessage",
    "Recipient",
    "Register",
    "Registration",
    "Registrations",
    "Released",
    "Repeater",
    "Reply",
    "ReplyReceipt",
    "RequestTooLarge",
    "Route",
    "RouteNotFound",
    "Routes",
    "Scattered",
    "SendFailed",
    "Sent",
    "ServiceUnavailable",
    "Settings",
    "SqliteRepeatBuffer",
    "SqsHandler",
    "SqsReceiver",
    "SqsTransport",
    "State",
    "Taker",
    "Throttled",
    "Ticket",
    "TrackedBatch",
    "Tracker",
    "Verdict",
    "Work",
    "queue_notices",
    "unsigned",
]

_HOMES: Final = {
    "Accepted": "fanin.domain.buffer",
    "AccessDenied": "fanin.errors",
    "Batch": "fanin.domain.batch",
    "BatchClosed": "fanin.errors",
    "BatchGone": "fanin.errors",
    "BatchNotFound": "fanin.errors",
    "Batches": "fanin.domain.reports",
    "Bearer": "fanin.client.https.transport",
    "Buffer": "fanin.domain.buffer",
    "BufferFull": "fanin.errors",
    "BufferNotFound": "fanin.errors",
    "BufferPage": "fanin.domain.buffer",
    "ChannelRefused": "fanin.errors",
    "Claim": "fanin.domain.frames",
    "ClaimCheck": "fanin.domain.scatter",
    "Consumer": "fanin.client.consuming.consumer",
    "CorrelationIdAlive": "fanin.errors",
    "Count": "fanin.domain.acks",
    "Delivery": "fanin.client.frames.receiver",
    "Disposition": "fanin.client.frames.receiver",
    "Envelope": "fanin.client.frames.envelopes",
    "EnvelopesRefused": "fanin.errors",
    "Expired": "fanin.domain.reports",
    "ExportDamaged": "fanin.errors",
    "FailedItem": "fanin.domain.reports",
    "Failure": "fanin.domain.acks",
    "Failures": "fanin.domain.reports",
    "FaninError": "fanin.errors",
    "Frame": "fanin.domain.frames",
    "Gathered": "fanin.domain.scatter",
    "GatheredReply": "fanin.domain.scatter",
    "Group": "fanin.domain.ids",
    "Hold": "fanin.domain.frames",
    "IdempotencyKeyReused": "fanin.errors",
    "IdempotentReceiver": "fanin.client.frames.receiver",
    "InvalidItemId": "fanin.errors",
    "InvalidRequest": "fanin.errors",
    "ItemFailed": "fanin.errors",
    "ItemHasChild": "fanin.errors",
    "ItemRange": "fanin.domain.acks",
    "JobRunNotFound": "fanin.errors",
    "JsonCodec": "fanin.client.frames.envelopes",
    "Kind": "fanin.domain.batch",
    "Left": "fanin.domain.directory",
    "Level": "fanin.domain.buffer",
    "LimitReached": "fanin.errors",
    "LocalStackFailed": "fanin.errors",
    "MemoryRepeatBuffer": "fanin.client.frames.memory_repeat_buffer",
    "Message": "fanin.client.messages",
    "Missing": "fanin.domain.reports",
    "MissingRange": "fanin.domain.reports",
    "Mode": "fanin.domain.batch",
    "NotConfigured": "fanin.errors",
    "NotRegistered": "fanin.errors",
    "Notice": "fanin.client.frames.transport",
    "OnDeadline": "fanin.domain.batch",
    "OpenFrame": "fanin.domain.frames",
    "OutcomeUnknown": "fanin.errors",
    "Policy": "fanin.domain.routing",
    "Producer": "fanin.client.buffers",
    "Progress": "fanin.domain.reports",
    "ProtobufCodec": "fanin.client.frames.envelopes",
    "PutEvent": "fanin.domain.routing",
    "PutRoute": "fanin.domain.routing",
    "Receipt": "fanin.domain.acks",
    "ReceivedMessage": "fanin.client.messages",
    "Recipient": "fanin.domain.scatter",
    "Register": "fanin.domain.directory",
    "Registration": "fanin.domain.directory",
    "Registrations": "fanin.domain.directory",
    "Released": "fanin.domain.buffer",
    "Repeater": "fanin.client.frames.repeater",
    "Reply": "fanin.domain.scatter",
    "ReplyReceipt": "fanin.domain.scatter",
    "PartlyMarked": "fanin.errors",
    "RequestTooLarge": "fanin.errors",
    "Route": "fanin.domain.routing",
    "RouteNotFound": "fanin.errors",
    "Routes": "fanin.domain.routing",
    "Scattered": "fanin.domain.scatter",
    "SendFailed": "fanin.errors",
    "Sent": "fanin.domain.routing",
    "ServiceUnavailable": "fanin.errors",
    "Settings": "fanin.entry.settings",
    "SqliteRepeatBuffer": "fanin.client.frames.sqlite_repeat_buffer",
    "SqsHandler": "fanin.client.consuming.handler",
    "SqsReceiver": "fanin.client.frames.sqs_receiver",
    "SqsTransport": "fanin.client.frames.sqs_transport",
    "State": "fanin.domain.batch",
    "Taker": "fanin.client.buffers",
    "Throttled": "fanin.errors",
    "Ticket": "fanin.domain.frames",
    "TrackedBatch": "fanin.client.producing.batch",
    "Tracker": "fanin.client.tracker",
    "Verdict": "fanin.domain.reports",
    "Work": "fanin.domain.buffer",
    "queue_notices": "fanin.client.frames.sqs_notices",
    "unsigned": "fanin.client.https.transport",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fanin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
