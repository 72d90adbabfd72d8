"""A window of messages: each is handled on its own, and all are acknowledged together."""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Final, TypeAlias, TypedDict, Unpack

from fanin.adapters.system import SystemClock
from fanin.client.consuming.acknowledging import Acknowledger
from fanin.client.ended_batches import Skipping
from fanin.client.items_in_hand import IN_HAND
from fanin.client.messages import ReceivedMessage, read_message
from fanin.client.producing.batch import TrackedBatch
from fanin.domain import ids
from fanin.domain.diagnosis import Retry
from fanin.domain.failures import Keep, reason_of
from fanin.domain.limits import MAX_REASON
from fanin.domain.marks import Done, Failure, Mark, batch_of
from fanin.entry.kept_messages import in_lambda_form, kept_message
from fanin.errors import BatchGone, BatchNotFound, FaninError, InvalidRequest, ItemDone, ItemFailed
from fanin.wire.marks import result_json

logger = logging.getLogger("fanin")

MessageHandler: TypeAlias = Callable[[ReceivedMessage], object]
"""What a consumer does with one message; its return value is ignored, unless the consumer keeps results.

It raises ``ItemFailed`` to mark the item failed for good, and any other error to receive the message again.
Messages are delivered at least once, so handling one twice must do no harm. The message of a scatter is done
when it is replied to (``tracker.scatters.reply``), now or later, and not by being handled. A message for
whose item the handler opens a batch (``parent_item=message.item``) is marked when that batch ends: done if it
completes without failures, else failed.
"""


BatchOf: TypeAlias = Callable[[ReceivedMessage], TrackedBatch]
"""Makes the batch of a message, to which the item of the message may add."""

NoteRetries: TypeAlias = Callable[[Sequence[Retry]], None]
"""Notes failed attempts, so that a diagnosis can say what their error is; it does not raise."""

_REPEATED: Final = 2
"""A failed attempt is noted from this receive on: the first may be an accident, and healthy items cost
nothing."""


_LAZY: Final = (
    "a handler must do its work before it returns, but this one is async or a generator; write a plain"
    " function, such as one that calls asyncio.run"
)


def check_handler(handle: object) -> None:
    """Check that a handler is a function, and not one that returns before its work is done.

    Raises:
        InvalidRequest: it cannot be called, or is async or a generator.
    """
    if not callable(handle):
        raise InvalidRequest(
            f"a handler must be a function of a ReceivedMessage, not {type(handle).__name__}; pass the "
            "function itself"
        )
    lazy = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(test(one) for test in lazy for one in (handle, type(handle).__call__)):
        raise InvalidRequest(_LAZY)


def check_returned(returned: object) -> None:
    """Check what a handler has returned: nothing that still has to be run.

    Raises:
        InvalidRequest: it is a coroutine or a generator.
    """
    if inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        raise InvalidRequest(_LAZY)


UNKNOWN_MS: Final = 86_400_000
"""Age in ms from which messages of a batch that the service does not know are dropped: a day.

A stack that was just restored does not know its youngest batches, and may be restored once more.
"""


@dataclass
class _Delivery:
    """One delivery of a message; a queue may deliver a message twice within one receive.

    Attributes:
        group: its message group; None if it has none.
        mark: what became of its item, until the ledger has taken it; None if there is nothing to tell.
        again: whether it must be delivered again.
    """

    group: str | None = None
    mark: Mark | None = None
    again: bool = False


class Handling(TypedDict, total=False):
    """How a consumer handles messages, besides what it is.

    Attributes:
        keep: what is kept of failed items: their messages, by default, or their reasons alone.
        results: whether what the handler returns is the result of the item; None is no result.
        skipping: decides which messages are dropped because their batch has ended; None drops none.
        note: notes attempts that failed again; None notes nothing.
        now: tells the time in milliseconds since the epoch; the machine's by default.
        batch_of: makes the batch to which the item of a message may add; None lets none add.
    """

    keep: Keep
    results: bool
    skipping: Skipping | None
    note: NoteRetries | None
    now: Callable[[], int] | None
    batch_of: BatchOf | None


class MessageWindow:
    """Messages that were received together.

    A message that was handled and whose batch is gone is deleted: nobody waits for its mark, and it would
    only be handled again. A batch is gone if the service says that it was removed or is past its lifetime,
    or if the service does not know it and its id is older than a day. After any other refusal the message
    comes again.

    On a FIFO queue nothing of a message group is handled, or deleted, behind the first message that comes
    again.

    Args:
        handle: does the work of one message.
        acknowledge: tells the ledger about all of them.
        fifo: whether they come from a FIFO queue.
        source: URL or ARN of the queue they were received from; by default what the messages say.
        how: as ``Handling`` says.

    Attributes:
        skipped: how many messages were dropped without being handled, because their batch had ended.
    """

    def __init__(
        self,
        handle: MessageHandler,
        acknowledge: Acknowledger,
        *,
        fifo: bool = False,
        source: str = "",
        **how: Unpack[Handling],
    ) -> None:
        self._handle = handle
        self._acknowledge = acknowledge
        self._fifo = fifo
        self._source = source
        self._keep = how.get("keep", Keep.MESSAGE)
        self._results = how.get("results", False)
        self._skipping = how.get("skipping")
        self._note = how.get("note")
        self._now = how.get("now") or SystemClock().now
        self._batch_of = how.get("batch_of")
        self.skipped = 0
        self._asked: set[int | None] = set()
        self._retries: list[Retry] = []
        self._busy = False
        self._deliveries: list[_Delivery] = []

    def run(self, raw: Iterable[Mapping[str, Any]]) -> set[int]:
        """Handle messages one after the other, acknowledge them together, and note what failed again.

        Args:
            raw: the messages, as Lambda or SQS delivered them.

        Returns:
            Places of the messages that must be delivered again; all others may be deleted.
        """
        for one in raw:
            delivery, of = _Delivery(), ""
            self._deliveries.append(delivery)
            try:
                message = read_message(one)
                if message.batch_id is not None:
                    of = f" of batch {message.batch_id}, item {message.item},"
                delivery.group = message.group_id
                delivery.again = self._waits(delivery)
                delivery.mark = None if delivery.again else self._outcome(message)
            except Exception:  # whatever the handler raises, the queue delivers the message again
                message_id = in_lambda_form(one).get("messageId")
                logger.exception(
                    "message %s%s failed and comes again after the queue's visibility timeout", message_id, of
                )
                delivery.again = True
            if delivery.mark is not None:
                self._ask(message)
        self._flush()
        if self._retries and self._note is not None and not self._busy:
            self._note(self._retries)  # a ledger that is too busy to mark items is not asked for notes
        broken: set[str | None] = set()
        for delivery in self._deliveries:
            waits = self._fifo and not broken.isdisjoint({delivery.group, None})
            delivery.again = delivery.again or waits
            if delivery.again:
                broken.add(delivery.group)
        return {place for place, delivery in enumerate(self._deliveries) if delivery.again}

    def _waits(self, delivery: _Delivery) -> bool:
        """Whether a message of its group before it comes again, or one that could not be read."""
        groups = delivery.group, None
        return self._fifo and any(one.again and one.group in groups for one in self._deliveries)

    def _outcome(self, message: ReceivedMessage) -> Mark | None:
        """Handle one message; whatever the handler raises is raised, except ``ItemFailed``."""
        if self._skipping is not None and self._skipping.skips(message, fifo=self._fifo):
            self.skipped += 1
            return None
        if self._batch_of is not None and message.item is not None:
            message = replace(message, batch=cache(partial(self._batch_of, message)))
        failure, result = None, None
        with IN_HAND.handling(message.item) as handling:
            try:
                returned = self._handle(message)
                check_returned(returned)
                if self._results and returned is not None:
                    result_json(returned)
                    result = returned
            except ItemFailed as failed:
                failure = failed.reason
            except Exception as error:
                if isinstance(error, ItemDone) and error.item == message.item:
                    logger.info("a message is dropped, since an earlier delivery has done it: %s", error)
                    return None
                self._remember(message, error)
                raise
        # The reply may still come: marking its recipient done now would end the scatter without it. The same
        # holds for a child batch: its end marks the item.
        waits = (message.expects_reply or handling.left_to_child) and failure is None
        if handling.left_to_child and waits and (message.totals or result is not None):
            logger.warning(
                "what was added or returned for item %s counts nowhere, because its child batch marks it:"
                " %s; add it to the items of the child, whose totals go to the item",
                message.item,
                message.totals,
            )
        if message.item is None or waits:
            return None
        if failure is None:
            plain = not message.totals and result is None
            return message.item if plain else Done(message.item, message.totals, result)
        kept = kept_message(message.raw) if self._keep is Keep.MESSAGE else None
        source = self._source or str(message.raw.get("eventSourceARN", ""))
        received = message.receive_count
        return Failure(message.item, failure[:MAX_REASON], kept, received, source, message.totals)

    def _ask(self, message: ReceivedMessage) -> None:
        """Acknowledge what was handled so far, if the receipt may tell that the batch has ended meanwhile."""
        if self._skipping is None or message.batch_id in self._asked or not self._skipping.asks(message):
            return
        self._asked.add(message.batch_id)
        self._flush()

    def _remember(self, message: ReceivedMessage, error: Exception) -> None:
        if message.item is not None and message.receive_count >= _REPEATED:
            queue = str(message.raw.get("eventSourceARN", "")).rpartition(":")[2] or self._source
            self._retries.append(Retry(message.item, message.receive_count, reason_of(error), queue))

    def _flush(self) -> None:
        """Acknowledge what was handled since the last time."""
        told = [one for one in self._deliveries if one.mark is not None and not one.again]
        marks = [one.mark for one in told if one.mark is not None]
        if not marks:
            return
        unsettled = self._acknowledge(marks)
        for place, delivery in enumerate(told):
            error = unsettled.get(place)
            if error is None or self._is_gone(marks[place], error):
                delivery.mark = None
            else:
                delivery.again = True
        self._log(marks, unsettled)

    def _log(self, marks: Sequence[Mark], unsettled: Mapping[int, FaninError]) -> None:
        for place, error in unsettled.items():
            item, code = getattr(marks[place], "item", marks[place]), error.code
            if self._is_gone(marks[place], error):
                logger.warning("item %s was handled, and its message is dropped: %s", item, error)
            elif not error.retryable:
                logger.warning("item %r was refused (%s), its message comes again: %s", item, code, error)
        if busy := [error for error in unsettled.values() if error.retryable]:
            self._busy = True
            logger.warning("%d items could not be acknowledged and come again: %s", len(busy), busy[0])

    def _is_gone(self, mark: Mark, error: FaninError) -> bool:
        if isinstance(error, BatchNotFound):
            batch_id = batch_of(mark)
            return batch_id is not None and ids.made_at(batch_id) + UNKNOWN_MS < self._now()
        return isinstance(error, BatchGone)
