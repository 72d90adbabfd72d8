"""Which queue a dead letter comes from: reasons name it, since nobody sends to a dead-letter queue."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from fanin.adapters.aws import client_factory, translated
from fanin.errors import FaninError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

logger = logging.getLogger("fanin")


class DeadLetterSources:
    """Finds the queue that gives its dead letters to a queue. What it learns, it keeps.

    Args:
        client: makes the client, when first used.
    """

    def __init__(self, client: Callable[[], SQSClient] | None = None) -> None:
        self._make_client = client or client_factory("sqs")
        self._arns: dict[str, str | None] = {}

    @cached_property
    def _client(self) -> SQSClient:
        return self._make_client()

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
            url = self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
            sources = self._client.list_dead_letter_source_queues(QueueUrl=url)["queueUrls"]
        # A queue and its dead-letter queue are in the same region and account.
        return f"{place}:{sources[0].rpartition('/')[2]}" if len(sources) == 1 else None
