"""Acknowledgements from a stream: the function that ``foreachBatch`` calls with each micro-batch."""

from collections.abc import Callable, Sequence
from os import PathLike

from pyspark.sql import DataFrame

from fanin.spark.ack.coalescing import TASKS, WORK, Given, acknowledge_few
from fanin.spark.ack.driver import acknowledge_many
from fanin.spark.ack.ledger_writes import Acknowledged
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.places import path_of
from fanin.spark.runtime.rejects import EVERY
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import classic
from fanin.spark.runtime.values import id_of_batch


def ack_stream(
    service: Service | None = None,
    *,
    work: str | PathLike[str],
    rejects: str | PathLike[str] | None = None,
    batch_id: int | None = None,
    on_done: Callable[[int, Acknowledged], None] | None = None,
    totals: Sequence[str] = (),
) -> Callable[[DataFrame, int], None]:
    """Acknowledge every micro-batch of a stream. One that comes again changes nothing.

    A micro-batch of at most 10,000 rows takes one Spark job; and one before it, which reads the rows, if they
    have more than 32 partitions, or on Spark 3.5.

    Example:
        >>> handler = ack_stream(work="s3://bucket/acks")  # doctest: +SKIP
        >>> acks.writeStream.foreachBatch(handler).option("checkpointLocation", ...).start()  # doctest: +SKIP

    Args:
        service: the stack; by default the one that the environment names.
        work: a folder; a large micro-batch uses ``epoch=<its number>`` in it, and leaves only rejects there.
        rejects: a folder for rows that were left out, divided likewise; ``rejects`` below the micro-batch's
            folder in ``work`` if None.
        batch_id: the batch of all rows, for a stream that has only ordinals.
        on_done: called after each micro-batch with its number and with what it did.
        totals: names of totals of the batches, each a column; see ``acknowledge``.
    """
    stack, place = service or Service.from_env(), path_of("work", work)
    batch_id = id_of_batch(batch_id)
    apart = None if rejects is None else path_of("rejects", rejects)

    def handle(rows: DataFrame, epoch: int) -> None:
        folder = Folder(classic(rows.sparkSession, "ack_stream"), f"{place}/epoch={epoch}")
        left_out = folder.at("rejects") if apart is None else f"{apart}/epoch={epoch}"
        # Some sources, such as that of Kinesis, may give other rows when they are read once more.
        level = rows.storageLevel
        kept = level.useMemory or level.useDisk  # by somebody else; then they are not ours to drop
        if not kept:
            rows.persist()
        try:
            # Otherwise a task of the few would read some partitions one after another. A shard of Kinesis is
            # one, and takes as long as its fetch is allowed to.
            if rows.rdd.getNumPartitions() > TASKS:
                rows.count()
            # A micro-batch of nothing but rejects does not end the stream.
            given = Given(rows, stack, folder.path, left_out, batch_id, totals, EVERY)
            if (done := acknowledge_few(given)) is None:
                done = acknowledge_many(given)
                for name in WORK:
                    folder.delete(name)
        finally:
            if not kept:
                rows.unpersist()
        if on_done:
            on_done(epoch, done)

    return handle
