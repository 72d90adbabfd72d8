"""The queue and the batch of a fan-out: what it can fill, how a batch is opened, where its items begin."""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from fanin.app.ledger.service import LedgerService
from fanin.client.conversions import batch_request
from fanin.client.sqs import SQSClient, queue_errors
from fanin.domain import ids
from fanin.domain.batch import Batch, Kind, Mode, OpenBatch, State
from fanin.errors import GONE, AccessDenied, BatchClosed, IdempotencyKeyReused, InvalidRequest, NotConfigured
from fanin.spark.fanout.staging import Staging
from fanin.spark.runtime.service import Service

STAGING: Final = "staging"
"""The entry in the metadata of a fan-out's batch that names its staging."""
ADD_KEY: Final = "fan-out"
"""Idempotency key of the addition, within the batch of a fan-out."""


def request_of(options: Mapping[str, Any]) -> OpenBatch:
    """The request for the batch, from options as ``Tracker.open`` takes them and a fan-out can have them."""
    if isinstance(options.get("deadline"), timedelta):
        raise InvalidRequest(
            "deadline must be a point in time, such as datetime.now(UTC) + timedelta(hours=2), kept for the"
            " next run: counted from now, a second run would ask for another batch"
        )
    request = batch_request(0, **options)
    if request.limit is not None:
        raise InvalidRequest(
            "a fan-out on Spark cannot have a limit: it adds all items before its tasks send, and tasks that"
            " wait for consumers would hold executors idle. Leave limit out, or send with Tracker.batch,"
            " which waits while the batch is full"
        )
    if request.mode is not Mode.EXACT:
        raise InvalidRequest(
            f"a fan-out on Spark cannot have the mode {request.mode.value}: such a batch has no item ids, and"
            " a task that is retried would have its messages counted twice. Leave mode out"
        )
    if request.kind is not Kind.BATCH or request.size is not None:
        raise InvalidRequest(
            "a fan-out opens a plain batch and counts its items itself; leave kind and size out"
        )
    return request


def open_batch(
    service: Service,
    request: OpenBatch,
    key: str,
    staging: Staging,
    opened: Callable[[Batch], object],
    *,
    began: Callable[[int], bool] | None = None,
) -> tuple[Batch, str | None]:
    """Open the batch and add an item for each row of the staging, or find it.

    The batch is told to ``opened`` before it has items. For failed rows that are sent again, ``began`` says
    whether messages of a batch may have been sent; see ``open_retry``.

    Returns:
        The batch, and the prefix of its items; or its id alone, if rows have keys, which tasks add. None if
        there are no items, or the batch takes no more.
    """
    ledger = service.ledger()
    # The staging is part of the request: two drivers that each staged the dataset cannot share a batch.
    request = replace(request, metadata={**request.metadata, STAGING: staging.attempt})
    batch = ledger.open(request, key=key) if began is None else open_retry(ledger, request, key, began)
    opened(batch)
    if batch.state is not State.OPEN or not staging.rows:
        return batch, None
    if staging.keyed:
        return batch, str(batch.batch_id)
    try:
        return batch, ledger.add(batch.batch_id, staging.rows, key=ADD_KEY).prefix
    except BatchClosed:  # somebody has ended it just now
        return ledger.refresh([batch.batch_id])[batch.batch_id], None


def open_retry(ledger: LedgerService, request: OpenBatch, key: str, began: Callable[[int], bool]) -> Batch:
    """Open the new batch of a redrive, under a key or those that follow it.

    Its rows are taken: no other redrive sends them, so they must go out. If the new batch ended before it got
    them, or before any was sent, open another one under the next key. If the earlier batch was removed, open
    one without ``retry_of``.
    """
    part = 0
    while True:
        mine = f"{key}/{part}" if part else key
        try:
            batch = ledger.open(request, key=mine)
        except (*GONE, IdempotencyKeyReused) as error:
            # A driver that found the earlier batch removed has used this key without retry_of.
            try:
                batch = ledger.open(replace(request, retry_of=None), key=mine)
            except IdempotencyKeyReused:
                raise error from None
        if not batch.state.terminal:
            return batch
        if batch.items and (batch.state is State.COMPLETE or began(batch.batch_id)):
            return batch
        part += 1


def first_ordinal(service: Service, batch: Batch, sent_from: Staging) -> int:
    """Ordinal of the first row: that of the addition, of which a repeat says the same."""
    try:
        group = service.ledger().add(batch.batch_id, sent_from.rows, key=ADD_KEY)
    except BatchClosed:
        raise InvalidRequest(
            f"batch {batch.batch_id} ended before its rows became items, so nothing was sent; fan the"
            " dataset out again, in another folder"
        ) from None
    return ids.parse_prefix(group.prefix).first


def check_url(queue: str) -> str:
    """The text, if it is the URL of a queue."""
    with suppress(ValueError):  # a bracket that is not closed
        at = urlsplit(queue)
        if at.scheme in {"http", "https"} and at.netloc:
            return queue
    raise InvalidRequest(
        f"{queue!r} is not the URL of a queue, which looks like"
        " https://sqs.eu-west-1.amazonaws.com/123456789012/work"
    )


def check_queue(sqs: SQSClient, queue: str) -> None:
    """Refuse a queue that is not there.

    Asks with ``GetQueueAttributes``. A role may be allowed to send without being allowed to look. Then SQS
    denies it, or says that the queue "does not exist or you do not have access to it" (SQS Developer Guide,
    "Troubleshooting API errors"). The fan-out goes on, and standard error says that nobody looked.
    """
    try:
        with queue_errors(queue):
            sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    except (AccessDenied, InvalidRequest, NotConfigured) as error:
        if not isinstance(error, AccessDenied) and "or you do not have access" not in str(error):
            raise type(error)(f"{error}. This run has staged and sent nothing") from error
        sys.stderr.write(
            f"this job may not look at {queue} (sqs:GetQueueAttributes), so a missing queue shows only"
            " later\n"
        )
