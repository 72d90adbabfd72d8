"""What a repeater needs from outside: a transport for its envelopes, and the notices of its reply channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from fanin.client.frames.envelopes import Envelope

Transport: TypeAlias = Callable[[Sequence[Envelope]], object]
"""Sends envelopes of one frame.

It raises an error of fanin, or OSError, if some may not have been sent; they are sent again later. It raises
``EnvelopesRefused`` for those that it can never send; they are set aside. An error that blames what is in the
envelopes (``InvalidRequest``, or any other) is traced to the envelope, so that the others are sent.
"""


@runtime_checkable
class PayloadCheck(Protocol):
    """A ``Transport`` that knows beforehand what it can never send, as ``SqsTransport`` does."""

    def check(self, payload: bytes, content_type: str) -> None:
        """Check that a payload can be sent.

        Raises:
            InvalidRequest: the payload can never be sent.
        """
        ...


@dataclass(frozen=True, slots=True)
class Notice:
    """A message from a frame's reply channel.

    Attributes:
        kind: ``Complete Frame``, ``Frame Ended`` or ``Repeat Requested``.
        frame: id of the frame.
    """

    kind: str
    frame: int
