"""A window of messages: each is handled on its own, and all are acknowledged together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fanin.client.consuming.acknowledging import Acknowledger, ItemOutcome, unacknowledged
from fanin.client.messages import ReceivedMessage
from fanin.errors import ItemFailed

MessageHandler: TypeAlias = Callable[[ReceivedMessage], object]
"""What a consumer does with one message; its return value is ignored.

It raises ``ItemFailed`` to mark the item failed for good, and any other error to receive the message again.
Messages are delivered at least once, so handling one twice must do no harm. The message of a scatter is done
when it is replied to (``tracker.scatters.reply``), now or later, and not by being handled.
"""


class MessageWindow:
    """Messages that were received together.

    Args:
        handle: does the work of one message.
        acknowledge: tells the ledger about all of them.
    """

    def __init__(self, handle: MessageHandler, acknowledge: Acknowledger) -> None:
        self._handle = handle
        self._acknowledge = acknowledge
        self._outcomes: dict[str, ItemOutcome] = {}

    def handle(self, message: ReceivedMessage) -> None:
        """Handle one message; whatever the handler raises is raised, except ``ItemFailed``."""
        failure: str | None = None
        try:
            self._handle(message)
        except ItemFailed as failed:
            failure = failed.reason
        # The reply may still come: marking its recipient done now would end the scatter without it.
        waits = message.expects_reply and failure is None
        if message.item is not None and not waits:
            self._outcomes[message.message_id] = ItemOutcome(message.item, failure)

    def acknowledge(self) -> set[str]:
        """Acknowledge all messages that were handled.

        Returns:
            Ids of the messages that must be delivered again, because their items could not be marked.
        """
        unmarked = unacknowledged(self._acknowledge, list(self._outcomes.values()))
        return {message_id for message_id, outcome in self._outcomes.items() if outcome.item in unmarked}
