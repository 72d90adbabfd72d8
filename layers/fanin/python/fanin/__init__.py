"""fanin: know, exactly and at once, when a fan-out is finished.

The names below come with their first use, so that importing the package, as every function does, is free.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fanin.client.messages import Message, ReceivedMessage
    from fanin.client.tracker import Tracker
    from fanin.domain.batch import Count, Failure, ItemRange
    from fanin.errors import FaninError, ItemFailed, SendFailed

__version__ = "0.1.0"

__all__ = [
    "Count",
    "Failure",
    "FaninError",
    "ItemFailed",
    "ItemRange",
    "Message",
    "ReceivedMessage",
    "SendFailed",
    "Tracker",
]

_HOMES: Final = {
    "Count": "fanin.domain.batch",
    "Failure": "fanin.domain.batch",
    "FaninError": "fanin.errors",
    "ItemFailed": "fanin.errors",
    "ItemRange": "fanin.domain.batch",
    "Message": "fanin.client.messages",
    "ReceivedMessage": "fanin.client.messages",
    "SendFailed": "fanin.errors",
    "Tracker": "fanin.client.tracker",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fanin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
