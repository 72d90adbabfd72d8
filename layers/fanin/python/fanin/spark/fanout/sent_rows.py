"""The rows that a fan-out has sent, with the items that they became."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain.batch import Batch
from fanin.errors import InvalidRequest
from fanin.spark.fanout.bodies import BODY, KEY
from fanin.spark.fanout.folder_owner import noted_batch
from fanin.spark.fanout.opening import STAGING, first_ordinal
from fanin.spark.fanout.staging import ORDINAL, Staging, find_staging
from fanin.spark.outcome.driver import ordinals_of_keys
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.service import Service


def sent_rows(spark: SparkSession, service: Service, folder: str) -> DataFrame:
    """Read the rows that a fan-out has sent, each with its item: the input of ``outcomes``.

    The rows are read from the folder of the fan-out, and nothing is sent or written.

    Example:
        >>> service = Service.from_env()  # doctest: +SKIP
        >>> told = outcomes(sent_rows(spark, service, "s3://lake/runs/orders"), service)  # doctest: +SKIP

    Args:
        spark: the session.
        service: the stack.
        folder: of the fan-out, its ``--staging``.

    Returns:
        ``batch_id`` and ``ordinal``, which name the item, ``body``, the message, and ``key``, if items have
        keys; a row for each item, in any order. Rows that were left out, since they could not be a message,
        are not among them.

    Raises:
        InvalidRequest: no fan-out has sent the rows of the folder; says what to do.
        BatchNotFound, BatchGone: the batch is not there, or was removed.
    """
    staging, batch_id = find_staging(spark, folder), noted_batch(Folder(spark, folder))
    if staging is None or batch_id is None:
        holds = "holds no finished staging" if staging is None else "has staged rows, and no batch"
        raise InvalidRequest(
            f"{folder} {holds}: name the folder that a fan-out had as --staging. If it did not come to its"
            " end, run it again"
        )
    batch = service.ledger().refresh([batch_id])[batch_id]
    if batch.metadata.get(STAGING) != staging.attempt or (staging.rows and not batch.items):
        raise InvalidRequest(f"the rows of {folder} are not items of batch {batch_id}; run the fan-out again")
    return with_ordinals(spark, service, batch, staging)


def with_ordinals(spark: SparkSession, service: Service, batch: Batch, staging: Staging) -> DataFrame:
    """The rows of a staging that are items of its batch, as ``sent_rows`` gives them.

    Raises:
        InvalidRequest: the batch ended before its rows became items.
    """
    rows, batch_id = staging.read(spark), F.lit(batch.batch_id).cast("long")
    if staging.keyed:
        found = ordinals_of_keys(service, batch_id, F.col(KEY), F.col(BODY))
        items = rows.select(batch_id.alias("batch_id"), found.alias(ORDINAL), BODY, KEY)
        return items.where(F.col(ORDINAL).isNotNull())
    first = first_ordinal(service, batch, staging) if staging.rows else 0
    return rows.select(batch_id.alias("batch_id"), (F.col(ORDINAL) + F.lit(first)).alias(ORDINAL), BODY)
