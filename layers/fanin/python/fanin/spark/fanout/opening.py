"""The batch of a fan-out: which one it can fill, how it is opened, and where its items begin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from fanin.client.conversions import batch_request
from fanin.domain import ids
from fanin.domain.batch import Batch, Kind, Mode, OpenBatch, State
from fanin.errors import BatchClosed, InvalidRequest
from fanin.spark.fanout.earlier_batch import open_retry
from fanin.spark.fanout.staging import Staging
from fanin.spark.runtime.service import Service

STAGING: Final = "staging"
"""The entry in the metadata of a fan-out's batch that names its staging."""
ADD_KEY: Final = "fan-out"
"""Idempotency key of the addition, within the batch of a fan-out."""


def request_of(options: Mapping[str, Any]) -> OpenBatch:
    """The request for the batch, from options as ``Tracker.open`` takes them.

    Raises:
        InvalidRequest: there is no such option, or a fan-out cannot have it; or the deadline counts from now.
    """
    if isinstance(options.get("deadline"), timedelta):
        raise InvalidRequest(
            "deadline must be a point in time, such as datetime.now(UTC) + timedelta(hours=2), kept for the"
            " next run: counted from now, a second run would ask for another batch"
        )
    request = batch_request(0, **options)
    check_request(request)
    return request


def check_request(request: OpenBatch) -> None:
    """Refuse a batch that a fan-out cannot fill.

    Raises:
        InvalidRequest: it has a limit, is estimated, or belongs to one of fanin's patterns. Says what to do.
    """
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


def default_key(staging: Staging) -> str:
    """The idempotency key of a batch that is given none."""
    return f"{ADD_KEY}/{staging.attempt}"


def open_batch(
    service: Service,
    request: OpenBatch,
    key: str,
    staging: Staging,
    opened: Callable[[Batch], object],
    *,
    began: Callable[[int], bool] | None = None,
) -> tuple[Batch, str | None]:
    """Open the batch and add its items, or find it.

    Args:
        service: the stack.
        request: for the batch; its metadata gets the entry ``STAGING``.
        key: its idempotency key.
        staging: its rows.
        opened: called with the batch before items are added.
        began: of failed rows that are sent again, whether messages of a batch may have been sent, by its id;
            see ``open_retry``. None for a dataset.

    Returns:
        The batch, and the prefix of its items; or its id alone, if rows have keys, which tasks add. None if
        there are no items, or the batch takes no more.

    Raises:
        IdempotencyKeyReused: the key belongs to another fan-out.
        BatchNotFound: there is no batch to retry.
        BatchGone: the batch of the key, or the batch to retry, was removed.
        InvalidItemId: the service did not issue the parent item.
        InvalidRequest: the request cannot be met, for example since its deadline is over.
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
    return batch, ledger.add(batch.batch_id, staging.rows, key=ADD_KEY).prefix


def first_ordinal(service: Service, batch: Batch, sent_from: Staging) -> int:
    """Ordinal of the first row: that of the addition, of which a repeat says the same.

    Raises:
        InvalidRequest: the batch ended before its rows became items.
    """
    try:
        group = service.ledger().add(batch.batch_id, sent_from.rows, key=ADD_KEY)
    except BatchClosed:
        raise InvalidRequest(
            f"batch {batch.batch_id} ended before its rows became items, so nothing was sent; fan the"
            " dataset out again, in another folder"
        ) from None
    return ids.parse_prefix(group.prefix).first
