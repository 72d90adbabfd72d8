"""A window of messages: each is handled on its own, and all are acknowledged together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from fanin.adapters.system import SystemClock
from fanin.client.consuming.acknowledging import Acknowledger, ItemOutcome, unacknowledged
from fanin.client.items_in_hand import IN_HAND
from fanin.client.messages import ReceivedMessage
from fanin.domain import ids
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest, ItemFailed

logger = logging.getLogger("fanin")

MessageHandler: TypeAlias = Callable[[ReceivedMessage], object]
"""What a consumer does with one message; its return value is ignored.

It raises ``ItemFailed`` to mark the item failed for good, and any other error to receive the message again.
Messages are delivered at least once, so handling one twice must do no harm. The message of a scatter is done
when it is replied to (``tracker.scatters.reply``), now or later, and not by being handled. A message for
whose item the handler opens a batch (``parent_item=message.item``) is done when that batch ends.
"""


def check_handler(handle: object) -> None:
    """Check that a handler is a function.

    Raises:
        InvalidRequest: it cannot be called.
    """
    if not callable(handle):
        raise InvalidRequest(
            f"a handler must be a function of a ReceivedMessage, not {type(handle).__name__}; pass the "
            "function itself"
        )


UNKNOWN_MS: Final = 86_400_000
"""Age in ms from which messages of a batch that the service does not know are dropped: a day.

A stack that was just restored does not know its youngest batches, and may be restored once more.
"""


class MessageWindow:
    """Messages that were received together.

    A message that was handled and whose batch is gone is deleted: nobody waits for its mark, and it would
    only be handled again. A batch is gone if the service says that it was removed or is past its lifetime,
    or if the service does not know it and its id is older than a day. After any other refusal the message
    comes again.

    Args:
        handle: does the work of one message.
        acknowledge: tells the ledger about all of them.
        now: tells the time in milliseconds since the epoch; the machine's by default.
    """

    def __init__(
        self, handle: MessageHandler, acknowledge: Acknowledger, *, now: Callable[[], int] | None = None
    ) -> None:
        self._handle = handle
        self._acknowledge = acknowledge
        self._now = now or SystemClock().now
        self._outcomes: dict[str, ItemOutcome] = {}

    def handle(self, message: ReceivedMessage) -> None:
        """Handle one message; whatever the handler raises is raised, except ``ItemFailed``."""
        failure: str | None = None
        with IN_HAND.handling(message.item) as handling:
            try:
                self._handle(message)
            except ItemFailed as failed:
                failure = failed.reason
        # The reply may still come: marking its recipient done now would end the scatter without it. So it is
        # with a child batch, whose end marks the item.
        waits = (message.expects_reply or handling.left_to_child) and failure is None
        if message.item is not None and not waits:
            self._outcomes[message.message_id] = ItemOutcome(message.item, failure)

    def acknowledge(self) -> set[str]:
        """Acknowledge all messages that were handled.

        Returns:
            Ids of the messages that must be delivered again, because their items could not be marked.
        """
        unmarked = unacknowledged(self._acknowledge_or_drop, list(self._outcomes.values()))
        return {message_id for message_id, outcome in self._outcomes.items() if outcome.item in unmarked}

    def _acknowledge_or_drop(self, outcomes: Sequence[ItemOutcome]) -> None:
        """Acknowledge items; one that stands alone and whose batch is gone counts as acknowledged."""
        try:
            self._acknowledge(outcomes)
        except (BatchGone, BatchNotFound) as error:
            if len(outcomes) > 1 or not self._is_gone(outcomes[0].item, error):
                raise
            logger.warning("item %s was handled, and its message is dropped: %s", outcomes[0].item, error)

    def _is_gone(self, item: str, error: BatchGone | BatchNotFound) -> bool:
        block, _ = ids.parse_item(item)
        return isinstance(error, BatchGone) or ids.made_at(block.batch_id) + UNKNOWN_MS < self._now()
