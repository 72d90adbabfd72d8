"""A window of messages: each is handled on its own, and all are acknowledged together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from fanin.adapters.system import SystemClock
from fanin.client.consuming.acknowledging import Acknowledger, ItemOutcome, unacknowledged
from fanin.client.consuming.keeping import kept_message, source_of
from fanin.client.consuming.skipping import Skipping
from fanin.client.items_in_hand import IN_HAND
from fanin.client.messages import ReceivedMessage
from fanin.domain import ids
from fanin.domain.diagnosis import Retry
from fanin.domain.failures import Keep
from fanin.domain.limits import MAX_REASON
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest, ItemFailed

logger = logging.getLogger("fanin")

MessageHandler: TypeAlias = Callable[[ReceivedMessage], object]
"""What a consumer does with one message; its return value is ignored.

It raises ``ItemFailed`` to mark the item failed for good, and any other error to receive the message again.
Messages are delivered at least once, so handling one twice must do no harm. The message of a scatter is done
when it is replied to (``tracker.scatters.reply``), now or later, and not by being handled. A message for
whose item the handler opens a batch (``parent_item=message.item``) is done when that batch ends.
"""


NoteRetries: TypeAlias = Callable[[Sequence[Retry]], None]
"""Notes failed attempts, so that a diagnosis can say what their error is; it does not raise."""

_REPEATED: Final = 2
"""A failed attempt is noted from this receive on: the first may be an accident, and healthy items cost
nothing."""


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
        keep: what is kept of failed items: their messages, or their reasons alone.
        source: URL or ARN of the queue they were received from; by default what the messages say.
        note: notes attempts that failed again; None notes nothing.
        now: tells the time in milliseconds since the epoch; the machine's by default.
        skipping: decides which messages are dropped because their batch has ended; None drops none.
    """

    def __init__(
        self,
        handle: MessageHandler,
        acknowledge: Acknowledger,
        *,
        keep: Keep = Keep.MESSAGE,
        source: str = "",
        note: NoteRetries | None = None,
        now: Callable[[], int] | None = None,
        skipping: Skipping | None = None,
    ) -> None:
        self._skipping = skipping
        self._again: set[str] = set()
        self._asked: set[int | None] = set()
        self._note = note
        self._retries: list[Retry] = []
        self._handle = handle
        self._keep = keep
        self._source = source
        self._acknowledge = acknowledge
        self._now = now or SystemClock().now
        self._outcomes: dict[str, ItemOutcome] = {}

    def handle(self, message: ReceivedMessage) -> None:
        """Handle one message; whatever the handler raises is raised, except ``ItemFailed``."""
        if self._skipping is not None and self._skipping.skips(message):
            return
        failure: str | None = None
        with IN_HAND.handling(message.item) as handling:
            try:
                self._handle(message)
            except ItemFailed as failed:
                failure = failed.reason
            except Exception as error:
                self._remember(message, error)
                raise
        # The reply may still come: marking its recipient done now would end the scatter without it. So it is
        # with a child batch, whose end marks the item.
        waits = (message.expects_reply or handling.left_to_child) and failure is None
        if handling.left_to_child and waits and message.totals:
            logger.warning(
                "what was added to the message of item %s counts nowhere, because its child batch marks it:"
                " %s; add it to the items of the child, whose totals go to the item",
                message.item,
                message.totals,
            )
        if message.item is not None and not waits:
            self._outcomes[message.message_id] = self._outcome(message, message.item, failure)
            self._ask(message)

    def _outcome(self, message: ReceivedMessage, item: str, failure: str | None) -> ItemOutcome:
        if failure is None:
            return ItemOutcome(item, totals=message.totals)
        kept = kept_message(message) if self._keep is Keep.MESSAGE else None
        source = self._source or source_of(message)
        return ItemOutcome(item, failure, kept, message.receive_count, source, message.totals)

    def _ask(self, message: ReceivedMessage) -> None:
        """Acknowledge what was handled so far, if the receipt may tell that the batch has ended meanwhile."""
        if self._skipping is None or message.batch_id in self._asked or not self._skipping.asks(message):
            return
        self._asked.add(message.batch_id)
        try:
            self._again |= self._flush()
        except Exception as error:  # noqa: BLE001  the message was handled, and all are acknowledged later
            logger.warning("what was handled so far is acknowledged with the rest of the window: %s", error)

    def _remember(self, message: ReceivedMessage, error: Exception) -> None:
        if message.item is not None and message.receive_count >= _REPEATED:
            said = (
                f"{type(error).__name__}: {error}".rstrip(": ").encode(errors="replace").decode()[:MAX_REASON]
            )
            queue = str(message.raw.get("eventSourceARN", "")).rpartition(":")[2] or self._source
            self._retries.append(Retry(message.item, message.receive_count, said, queue))

    def acknowledge(self) -> set[str]:
        """Acknowledge all messages that were handled, and note the attempts that failed again.

        Returns:
            Ids of the messages that must be delivered again, because their items could not be marked.
        """
        again = self._again | self._flush()
        if self._retries and self._note is not None and not again:
            self._note(self._retries)  # a ledger that is too busy to mark items is not asked for notes
        return again

    def _flush(self) -> set[str]:
        """Acknowledge what was handled since the last time; returns what ``acknowledge`` does, of these."""
        outcomes = self._outcomes
        unmarked = unacknowledged(self._acknowledge_or_drop, list(outcomes.values()))
        self._outcomes = {}  # only now: whatever was raised, none of them counts as acknowledged
        return {message_id for message_id, outcome in outcomes.items() if outcome.item in unmarked}

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
