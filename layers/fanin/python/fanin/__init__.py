"""fanin: know, exactly and at once, when a fan-out is finished.

The names below come with their first use, so that importing the package, as every function does, is free.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fanin.client.frames.memory_repeat_buffer import MemoryRepeatBuffer
    from fanin.client.frames.receiver import Delivery, IdempotentReceiver
    from fanin.client.frames.repeater import Repeater
    from fanin.client.frames.sqlite_repeat_buffer import SqliteRepeatBuffer
    from fanin.client.messages import Message, ReceivedMessage
    from fanin.client.tracker import Tracker
    from fanin.domain.acks import Count, Failure, ItemRange
    from fanin.domain.directory import Register
    from fanin.domain.frames import OpenFrame
    from fanin.domain.routing import Policy, PutEvent, PutRoute
    from fanin.errors import BufferFull, FaninError, ItemFailed, SendFailed

__version__ = "0.1.0"

__all__ = [
    "BufferFull",
    "Count",
    "Delivery",
    "Failure",
    "FaninError",
    "IdempotentReceiver",
    "ItemFailed",
    "ItemRange",
    "MemoryRepeatBuffer",
    "Message",
    "OpenFrame",
    "Policy",
    "PutEvent",
    "PutRoute",
    "ReceivedMessage",
    "Register",
    "Repeater",
    "SendFailed",
    "SqliteRepeatBuffer",
    "Tracker",
]

_HOMES: Final = {
    "BufferFull": "fanin.errors",
    "Count": "fanin.domain.acks",
    "Delivery": "fanin.client.frames.receiver",
    "Failure": "fanin.domain.acks",
    "FaninError": "fanin.errors",
    "IdempotentReceiver": "fanin.client.frames.receiver",
    "ItemFailed": "fanin.errors",
    "ItemRange": "fanin.domain.acks",
    "MemoryRepeatBuffer": "fanin.client.frames.memory_repeat_buffer",
    "Message": "fanin.client.messages",
    "OpenFrame": "fanin.domain.frames",
    "Policy": "fanin.domain.routing",
    "PutEvent": "fanin.domain.routing",
    "PutRoute": "fanin.domain.routing",
    "ReceivedMessage": "fanin.client.messages",
    "Register": "fanin.domain.directory",
    "Repeater": "fanin.client.frames.repeater",
    "SendFailed": "fanin.errors",
    "SqliteRepeatBuffer": "fanin.client.frames.sqlite_repeat_buffer",
    "Tracker": "fanin.client.tracker",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fanin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
