"""Acknowledgements from a stream: what ``foreachBatch`` calls with every micro-batch."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from fanin.spark.ack.driver import Acknowledged, acknowledge
from fanin.spark.ack.strategy import Way
from fanin.spark.runtime.service import Service


def ack_stream(
    service: Service,
    *,
    work: str,
    rejects: str | None = None,
    batch_id: int | None = None,
    told: Callable[[int, Acknowledged], None] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Acknowledge every micro-batch of a stream. One that comes again changes nothing.

    Example:
        >>> handler = ack_stream(Service.from_env(), work="s3://bucket/acks")  # doctest: +SKIP
        >>> acks.writeStream.foreachBatch(handler).option("checkpointLocation", ...).start()  # doctest: +SKIP

    Args:
        service: the stack.
        work: a folder; each micro-batch replaces ``epoch=<its number>`` in it.
        rejects: a folder, likewise; in ``work`` if None.
        batch_id: of all rows, for a stream of ordinals.
        told: is called with what a micro-batch did.
    """

    def handle(rows: DataFrame, epoch: int) -> None:
        kept = rows.persist()
        try:
            done = acknowledge(
                kept,
                service,
                work=f"{work}/epoch={epoch}",
                batch_id=batch_id,
                way=Way.PAGES,
                rejected=None if rejects is None else f"{rejects}/epoch={epoch}",
            )
        finally:
            kept.unpersist()
        if told:
            told(epoch, done)

    return handle
