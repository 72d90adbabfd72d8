"""One round of a consumer: handle each message, then tell the ledger about all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fanin.client.consuming.acknowledging import Deliver, Outcome, undelivered
from fanin.client.messages import ReceivedMessage
from fanin.errors import ItemFailed

Handle: TypeAlias = Callable[[ReceivedMessage], object]
"""What a consumer does with one message; its answer is not looked at.

It raises ``ItemFailed`` to mark the item failed for good, anything else to get the message again. Messages
come at least once, so doing one twice must do no harm. The message of a scatter is done when it is replied
to (``tracker.scatters.reply``), now or later, and not by being handled.
"""


class Round:
    """Messages that were received together.

    Args:
        handle: does the work.
        deliver: tells the ledger.
    """

    def __init__(self, handle: Handle, deliver: Deliver) -> None:
        self._handle = handle
        self._deliver = deliver
        self._outcomes: dict[str, Outcome] = {}

    def run(self, message: ReceivedMessage) -> None:
        """Handle one message; whatever the handler raises, but for ``ItemFailed``, passes through."""
        failure: str | None = None
        try:
            self._handle(message)
        except ItemFailed as failed:
            failure = str(failed).encode(errors="replace").decode()  # surrogates cannot be sent
        # A reply may still be on its way: to mark its recipient done would end the scatter without it.
        waits = message.asks_reply and failure is None
        if message.item is not None and not waits:
            self._outcomes[message.message_id] = Outcome(message.item, failure)

    def finish(self) -> set[str]:
        """Tell the ledger what was handled.

        Returns:
            Ids of the messages that must come again, since the ledger could not be told of them.
        """
        untold = undelivered(self._deliver, list(self._outcomes.values()))
        return {message_id for message_id, outcome in self._outcomes.items() if outcome.item in untold}
