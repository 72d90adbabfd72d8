"""The batch whose failed rows a redrive sends again, and the new batch that takes over from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import Batch, Kind, Mode, OpenBatch, State
from fanin.domain.failures import Keep
from fanin.errors import GONE, IdempotencyKeyReused, InvalidRequest
from fanin.spark.fanout.bodies import BODY
from fanin.spark.fanout.staging import Staging
from fanin.spark.runtime.service import Service


class EarlierBatch(NamedTuple):
    """What a new batch takes over from the batch that it retries.

    It is stored with the rows that were taken: no other redrive sends these, so they must go out even if the
    earlier batch is removed.

    Attributes:
        batch_id: of the earlier batch.
        user_key, keep, totals, metadata: as that batch has them, in types of JSON.
    """

    batch_id: int
    user_key: str
    keep: str
    totals: Sequence[str]
    metadata: Mapping[str, str]

    @classmethod
    def of(cls, batch: Batch) -> EarlierBatch:
        return cls(batch.batch_id, batch.user_key, batch.keep.value, list(batch.totals), dict(batch.metadata))


def still_there(service: Service, batch_id: int, chosen: Staging | None) -> Batch:
    """Read the earlier batch.

    Args:
        service: the stack.
        batch_id: of the earlier batch.
        chosen: rows of which some may be taken; None if none can be.

    Raises:
        BatchNotFound, BatchGone: it is not there, or was removed. If rows may be taken, says how to send all.
    """
    try:
        return service.ledger().refresh([batch_id])[batch_id]
    except GONE as error:
        if chosen is None or not chosen.rows:
            raise
        rows = f"{chosen.folder}/{chosen.attempt}"
        raise type(error)(
            f"batch {batch_id} was removed before all of its failed rows were taken, so nobody can tell which"
            f" another redrive has sent. To send all {chosen.rows} of them, fan them out as a dataset:"
            f" --input {rows} --format parquet --body {BODY} and another --staging"
        ) from error


def ended_batch(batch: Batch) -> Batch:
    """Refuse a batch whose rows cannot be sent again, or not yet.

    Raises:
        InvalidRequest: it is estimated, belongs to a pattern, or has not ended.
    """
    if batch.kind is not Kind.BATCH or batch.mode is not Mode.EXACT:
        raise InvalidRequest(
            f"{batch.batch_id} is not the batch of a fan-out on Spark, which is a plain and exact one"
        )
    if not batch.state.terminal:
        raise InvalidRequest(
            f"batch {batch.batch_id} is {batch.state}; its failed rows can be sent again when it has ended."
            f" `fanin why {batch.batch_id}` says what it waits for"
            + (f", and `fanin redrive {batch.batch_id}` sends what it holds" if batch.holds else "")
        )
    return batch


def retrying(request: OpenBatch, earlier: EarlierBatch) -> OpenBatch:
    """The request for the new batch: what it leaves open is as in the earlier batch.

    Raises:
        InvalidRequest: the request retries another batch.
    """
    if request.retry_of not in {None, earlier.batch_id}:
        raise InvalidRequest(
            f"the rows are those of batch {earlier.batch_id}, and the request retries batch"
            f" {request.retry_of}; leave retry_of out"
        )
    return replace(
        request,
        retry_of=earlier.batch_id,
        user_key=request.user_key or earlier.user_key,
        keep=request.keep or Keep(earlier.keep),
        totals=request.totals or tuple(earlier.totals),
        metadata={**earlier.metadata, **request.metadata},
    )


def open_retry(ledger: LedgerService, request: OpenBatch, key: str, began: Callable[[int], bool]) -> Batch:
    """Open the new batch of a redrive.

    Its rows are taken: no other redrive sends them, so they must go out. If the new batch ended before it got
    them, or before any was sent, open another one under the next key. If the earlier batch was removed, open
    one without ``retry_of``.

    Args:
        ledger: the service.
        request: for the batch.
        key: the first idempotency key.
        began: whether messages of a batch may have been sent.

    Raises:
        BatchGone: the new batch was removed.
        IdempotencyKeyReused: the key belongs to another fan-out.
        InvalidRequest: the deadline of another batch to open is over.
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
