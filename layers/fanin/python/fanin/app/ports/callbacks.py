"""Those who wait for the end of a batch: tasks, durable functions, webhooks."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from fanin.app.ports.events import Event
from fanin.domain.targets import Target


class Notice(NamedTuple):
    """What a target is told.

    Attributes:
        event: of the end, as it is on the bus.
        succeeded: whether the batch ended complete and no item failed.
    """

    event: Event
    succeeded: bool


class Callbacks(Protocol):
    """Calls back targets of all types but queues, which are sent to like any channel."""

    def call(self, target: Target, notice: Notice) -> None:
        """Tell a target; may be repeated.

        A target that waits no more, because it was told, was stopped or is past its time, counts as told.

        Raises:
            TargetRefused: the target will never take it.
            FaninError: it did not take it now. No message names the token or the path of the URL.
        """
        ...
