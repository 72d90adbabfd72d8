"""What the tags of a dead-letter queue say: whether the messages of failed items may be stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fanin import names
from fanin.adapters.aws import client_factory, translated
from fanin.app.ports.system import Clock
from fanin.domain.failures import Keep
from fanin.errors import AccessDenied

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

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
        self._make_client = client or client_factory("sqs")
        self._known: dict[str, tuple[int, Keep]] = {}

    @cached_property
    def _client(self) -> SQSClient:
        with translated():
            return self._make_client()

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
                url = self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
                tags = self._client.list_queue_tags(QueueUrl=url).get("Tags", {})
        except AccessDenied:
            return Keep.MESSAGE
        return Keep.REASON if tags.get(names.KEEP_TAG) == Keep.REASON else Keep.MESSAGE
