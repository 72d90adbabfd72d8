"""What a session of Spark Connect cannot do."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest

_CONNECT: Final = "pyspark.sql.connect"


def classic(spark: SparkSession, what: str) -> SparkSession:
    """Refuse a session of Spark Connect.

    Its client has no Spark context, which says how many tasks a cluster runs, counts what they do, and has
    the settings of Hadoop. ``outcomes`` needs none of these, and takes any session.

    Returns:
        The session.

    Raises:
        InvalidRequest: it is one of Spark Connect.
    """
    if type(spark).__module__.startswith(_CONNECT):
        raise InvalidRequest(
            f"{what} was called with a session of Spark Connect, whose client has no Spark context. Run"
            " it where the driver is: as a job of the cluster (spark-submit, EMR, Glue, a notebook on a"
            " dedicated cluster of Databricks), or with a session that was made without .remote(...)"
        )
    return spark
