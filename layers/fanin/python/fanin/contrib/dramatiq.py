"""Dramatiq: messages with the option ``item`` mark their items. Needs the extra ``dramatiq``."""

from contextlib import ExitStack
from functools import cached_property
from threading import local
from typing import Any, Final
from uuid import uuid4

from dramatiq import Broker, Worker, get_encoder
from dramatiq.broker import MessageProxy
from dramatiq.common import compute_backoff
from dramatiq.middleware import Middleware, MiddlewareError, Retries, SkipMessage

from fanin.client.items_in_hand import IN_HAND
from fanin.client.tracker import AckPath, Tracker
from fanin.contrib import items
from fanin.domain.diagnosis import Retry
from fanin.domain.failures import KeptMessage, reason_of
from fanin.domain.marks import Done, Failure

__all__ = ["TrackItems", "send_again"]

FIRST_WAIT_MS: Final = 1_000
_LONGEST_WAIT_MS: Final = 600_000
_TOLD: Final = "fanin"
"""Option of a message that only tells of its item: ``reason`` (null: it is done), ``attempts``, ``tries``."""


class TrackItems(Middleware):
    """Marks the item that a message carries in its option ``item``.

    ::

        broker.add_middleware(TrackItems(), before=Retries)

        import_row.send_with_options(args=(row,), item=item)

    The item is done when the actor returns, and has failed when its message is given up; then the arguments
    are kept. An actor that opens a child batch for the item leaves the item to that batch. Actors that are
    called within others mark nothing, and neither do messages without an item.

    If fanin cannot be reached, a message takes the place of the one that was handled. It does not run the
    actor, and is repeated until the item is marked.

    Args:
        tracker: by default the one of the environment.
        via: ``"queue"`` marks items through the ack queue, which is cheaper and takes some seconds.
    """

    def __init__(self, tracker: Tracker | None = None, *, via: AckPath = "api") -> None:
        self._given = tracker
        self._via = via
        self._here = local()

    @cached_property
    def _tracker(self) -> Tracker:
        return self._given or Tracker.from_env()

    def before_worker_boot(self, broker: Broker, _worker: Worker) -> None:
        """Refuse to run where it would take a message that is given up for one that is retried.

        Raises:
            MiddlewareError: it stands behind ``Retries``.
        """
        kinds = [type(one) for one in broker.middleware]
        if Retries in kinds and kinds.index(type(self)) > kinds.index(Retries):
            raise MiddlewareError(
                "TrackItems must know what Retries decides; write broker.add_middleware(TrackItems(),"
                " before=Retries)"
            )

    def before_process_message(self, _broker: Broker, message: MessageProxy) -> None:
        if _TOLD in message.options:
            raise SkipMessage("it only says what became of an item")
        self._here.stack = ExitStack()
        self._here.handling = self._here.stack.enter_context(IN_HAND.handling(message.options.get("item")))
        self._here.attempt = message.options.get("retries", 0) + 1

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: Any = None
    ) -> None:
        self._here.stack.close()
        item = message.options.get("item")
        if item is None or (exception is None and self._here.handling.left_to_child):
            return
        reason = None if exception is None else reason_of(exception)
        if reason is None or message.failed or not any(isinstance(one, Retries) for one in broker.middleware):
            self._tell(broker, message, {"reason": reason, "attempts": self._here.attempt, "tries": 0})
        else:
            self._tracker.note_retries([Retry(item, self._here.attempt, reason)])

    def after_skip_message(self, broker: Broker, message: MessageProxy) -> None:
        skipped = {"reason": "skipped, or too old", "attempts": message.options.get("retries", 0), "tries": 0}
        if "item" in message.options:
            self._tell(broker, message, message.options.get(_TOLD, skipped))

    def _tell(self, broker: Broker, message: MessageProxy, told: dict[str, Any]) -> None:
        item, reason = message.options["item"], told["reason"]
        mark = Done(item) if reason is None else Failure(item, reason, _kept(message), told["attempts"])
        if items.tell(self._tracker, self._via, mark) is None:
            return
        tries, wait = compute_backoff(told["tries"], factor=FIRST_WAIT_MS, max_backoff=_LONGEST_WAIT_MS)
        later = message.copy(message_id=str(uuid4()), options={_TOLD: {**told, "tries": tries}})
        broker.enqueue(later, delay=wait)


def _kept(message: MessageProxy) -> KeptMessage:
    payload = get_encoder().encode({"args": message.args, "kwargs": message.kwargs})
    return items.kept_call(message.actor_name, payload, {})


def send_again(broker: Broker, batch_id: int, tracker: Tracker | None = None) -> int:
    """Open a batch with the failed items of another, and send their messages again.

    A repeat goes on with the same batch, and sends nothing once that is closed. Failures whose arguments
    were not kept are left out.

    Args:
        broker: has the actors.
        batch_id: the batch whose items failed.
        tracker: by default the one of the environment.

    Returns:
        The id of the new batch.

    Raises:
        InvalidRequest: no failed item of the batch has kept its arguments.
    """

    def send(item: str, kept: KeptMessage) -> None:
        called = get_encoder().decode(items.payload_of(kept))
        actor = broker.get_actor(items.attribute(kept, items.TASK))
        broker.enqueue(
            actor.message_with_options(args=tuple(called["args"]), kwargs=called["kwargs"], item=item)
        )

    return items.call_again(tracker or Tracker.from_env(), batch_id, send)
