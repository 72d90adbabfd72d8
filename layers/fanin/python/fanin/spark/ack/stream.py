"""Acknowledgements from a stream: the function that ``foreachBatch`` calls with each micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from fanin.spark.ack.driver import Acknowledged, acknowledge
from fanin.spark.ack.strategy import Strategy
from fanin.spark.runtime.service import Service


def ack_stream(
    service: Service,
    *,
    work: str,
    rejects: str | None = None,
    batch_id: int | None = None,
    on_done: Callable[[int, Acknowledged], None] | None = None,
    totals: Sequence[str] = (),
) -> Callable[[DataFrame, int], None]:
    """Acknowledge every micro-batch of a stream. One that comes again changes nothing.

    Example:
        >>> handler = ack_stream(Service.from_env(), work="s3://bucket/acks")  # doctest: +SKIP
        >>> acks.writeStream.foreachBatch(handler).option("checkpointLocation", ...).start()  # doctest: +SKIP

    Args:
        service: the stack.
        work: a folder; each micro-batch replaces ``epoch=<its number>`` in it.
        rejects: a folder for rows that were left out, divided likewise; ``rejects`` below the micro-batch's
            folder in ``work`` if None.
        batch_id: the batch of all rows, for a stream that has only ordinals.
        on_done: called after each micro-batch with its number and with what it did.
        totals: names of totals of the batches, each a column; see ``acknowledge``.
    """

    def handle(rows: DataFrame, epoch: int) -> None:
        kept = rows.persist()
        try:
            done = acknowledge(
                kept,
                service,
                work=f"{work}/epoch={epoch}",
                batch_id=batch_id,
                strategy=Strategy.PAGES,
                rejects=None if rejects is None else f"{rejects}/epoch={epoch}",
                totals=totals,
            )
        finally:
            kept.unpersist()
        if on_done:
            on_done(epoch, done)

    return handle
