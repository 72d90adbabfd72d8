"""What is known of dead-letter queues: which queue a letter comes from, and whether messages may be stored.

Reasons name the queue, since nobody sends to a dead-letter queue. Its tags say whether the messages of failed
items may be stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from fanin import names
from fanin.adapters.aws import client_factory, once, translated
from fanin.app.ports.system import Clock
from fanin.domain.failures import Keep
from fanin.errors import AccessDenied, FaninError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


logger = logging.getLogger("fanin")


class DeadLetterSources:
    """Finds the queue that gives its dead letters to a queue. What it learns, it keeps.

    Args:
        client: makes the client, when first used.
    """

    def __init__(self, client: Callable[[], SQSClient] | None = None) -> None:
        self._client = once(client or client_factory("sqs"))
        self._arns: dict[str, str | None] = {}

    def arn_of(self, dead_letters: str) -> str | None:
        """ARN of the one queue whose dead letters a queue takes, by the ARN of that.

        Returns:
            None if it has several sources or none, or they could not be listed; only the last is asked again.
        """
        if dead_letters not in self._arns:
            try:
                self._arns[dead_letters] = self._look(dead_letters)
            except (FaninError, ClientError, BotoCoreError) as error:  # a reason is not worth failing for
                logger.warning("the sources of %s could not be listed: %s", dead_letters, error)
                return None
        return self._arns[dead_letters]

    def _look(self, dead_letters: str) -> str | None:
        place, _, name = dead_letters.rpartition(":")
        with translated():
            account = place.rpartition(":")[2]
            url = self._client().get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
            sources = self._client().list_dead_letter_source_queues(QueueUrl=url)["queueUrls"]
        # A queue and its dead-letter queue are in the same region and account.
        return f"{place}:{sources[0].rpartition('/')[2]}" if len(sources) == 1 else None


FRESH_MS: Final = 60_000
"""How long the tags of a queue are remembered: about as long as SQS takes to show new ones."""


class QueueTags:
    """Reads tags of queues, and remembers them for a minute.

    Args:
        clock: tells the time.
        client: makes the client, when first used.
    """

    def __init__(self, clock: Clock, client: Callable[[], SQSClient] | None = None) -> None:
        self._clock = clock
        self._client = once(client or client_factory("sqs"))
        self._known: dict[str, tuple[int, Keep]] = {}

    def keep(self, arn: str) -> Keep:
        """What is kept of failed items whose messages are in a dead-letter queue.

        A process that may not read the tags keeps messages: where a queue has the tag, the construct that set
        it has also allowed to read it.

        Args:
            arn: of the dead-letter queue.

        Raises:
            Throttled, ServiceUnavailable: SQS did not say whether a message may be stored.
        """
        now = self._clock.now()
        known = self._known.get(arn)
        if known is None or now - known[0] >= FRESH_MS:
            known = self._known[arn] = (now, self._read(arn))
        return known[1]

    def _read(self, arn: str) -> Keep:
        account, name = arn.split(":")[4:6]
        try:
            with translated():
                url = self._client().get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
                tags = self._client().list_queue_tags(QueueUrl=url).get("Tags", {})
        except AccessDenied:
            return Keep.MESSAGE
        return Keep.REASON if tags.get(names.KEEP_TAG) == Keep.REASON else Keep.MESSAGE
