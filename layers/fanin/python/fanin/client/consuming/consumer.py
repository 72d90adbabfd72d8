"""A consumer in any process: it polls a queue, and guarantees the same as on Lambda."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Unpack

from fanin.adapters.backoff import Backoff
from fanin.client.consuming.acknowledging import Acknowledger
from fanin.client.consuming.window import Handling, MessageHandler, MessageWindow, check_handler
from fanin.client.sqs import PolledQueue
from fanin.domain.directory import is_fifo
from fanin.errors import ServiceUnavailable, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

logger = logging.getLogger("fanin")

SQS_WAITS: Final = Backoff(base=0.5, cap=20.0)
"""Waits of a consumer while SQS does not answer, by default."""


class Consumer:
    """Polls a queue for consumers outside of Lambda: it receives, handles, acknowledges, and then deletes.

    If the process dies in between, SQS delivers its messages again after their visibility timeout: choose one
    that is longer than the handling of ten messages. Any number of consumers may share a queue.

    Make one with ``tracker.consumer``::

        tracker.consumer(queue_url, handle).run()

    Args:
        sqs: client.
        queue_url: the queue, standard or FIFO.
        handle: does the work of one message.
        acknowledge: tells the ledger, as ``tracker.acknowledger()`` does.
        wait: seconds that a poll waits for messages, 0 to 20.
        visibility_timeout: seconds for which other consumers do not get the messages; None leaves it to the
            queue.
        backoff: waits after SQS did not answer.
        how: as ``Handling`` says.

    Raises:
        InvalidRequest: an argument is not what it should be.

    Attributes:
        skipped: how many messages were dropped without being handled, because their batch had ended.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        handle: MessageHandler,
        acknowledge: Acknowledger,
        *,
        wait: int = 20,
        visibility_timeout: int | None = None,
        backoff: Backoff | None = None,
        **how: Unpack[Handling],
    ) -> None:
        check_handler(handle)
        self._queue = PolledQueue(sqs, queue_url, wait=wait, visibility_timeout=visibility_timeout)
        self._window = partial(
            MessageWindow, handle, acknowledge, fifo=is_fifo(queue_url), source=queue_url, **how
        )
        self.skipped = 0
        self._backoff = backoff or SQS_WAITS

    def run(self, until: Callable[[], bool] = lambda: False) -> int:
        """Poll until told to stop; while SQS does not answer, wait longer and longer.

        A poll takes up to its ``wait``, and then the handling of up to ten messages. To stop at a signal,
        set an event in its handler, and pass ``until=event.is_set``: what was received is finished first.

        Args:
            until: called before each poll; True stops. By default polling never stops.

        Returns:
            How many messages were received.

        Raises:
            AccessDenied: the credentials do not allow to receive from the queue.
            NotConfigured: the queue does not exist, or credentials or a region are missing.
        """
        received, silent = 0, 0
        while not until():
            try:
                received += self.poll()
                silent = 0
            except (ServiceUnavailable, Throttled) as error:
                logger.warning("the queue cannot be polled now, trying again: %s", error)
                self._backoff.wait(silent)
                silent += 1
        return received

    def poll(self) -> int:
        """Receive up to ten messages once; handle, acknowledge and delete them.

        Returns:
            How many messages were received.

        Raises:
            AccessDenied, NotConfigured: as ``run`` does.
            ServiceUnavailable, Throttled: SQS did not answer, or asked to slow down.
        """
        messages = self._queue.receive()
        window = self._window()
        again = window.run(messages)
        self.skipped += window.skipped
        self._queue.delete([message for place, message in enumerate(messages) if place not in again])
        return len(messages)
