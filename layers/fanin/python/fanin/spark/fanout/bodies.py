"""Reads a dataset as the bodies of messages, and finds the rows that cannot be one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StringType, StructField, StructType

from fanin.client.sqs_messages import REQUEST_BYTES
from fanin.errors import InvalidRequest
from fanin.spark.runtime.formats import DatasetFormat, load
from fanin.spark.runtime.rejects import Reason

BODY: Final = "body"
_CORRUPT: Final = "_corrupt_record"
_ENVELOPE: Final = 256
"""Bytes of a message besides its body: the item id, and the name and type of its attribute."""


@dataclass(frozen=True)
class Dataset:
    """Rows to send.

    Attributes:
        path: file or folder, as Spark takes it.
        format: CSV has a header line, JSON an object on each line.
        body: the column that holds the message. None sends the row as a JSON object that keeps nulls; a line
            of a JSON dataset is sent as it is.
        schema: the columns of a CSV dataset, in DDL; without it all values are text.
        multiline: a CSV dataset has line breaks within quotes; Spark then reads each file in one task.
    """

    path: str
    format: DatasetFormat = DatasetFormat.PARQUET
    body: str | None = None
    schema: str | None = None
    multiline: bool = False

    def describe(self) -> dict[str, Any]:
        """Everything that the messages depend on, as JSON."""
        return asdict(self)


def read(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """Read a dataset; each row comes with its message, or with the reason why it has none.

    Returns:
        ``body``; ``value``, the row as it came; ``reason`` and ``detail``, null where the row has a message.

    Raises:
        InvalidRequest: the dataset or the column does not exist, or the format does not take a schema.
    """
    if dataset.schema is not None and dataset.format is not DatasetFormat.CSV:
        raise InvalidRequest(
            f"a {dataset.format} dataset takes no schema, since it has its own; only CSV does"
        )
    reader = _READERS[dataset.format]
    rows = load(spark, dataset.path, lambda: reader(spark, dataset), _READ)
    return rows.select(BODY, "value", *_judged())


def messages(rows: DataFrame) -> DataFrame:
    """The bodies of those rows of ``read`` that have one."""
    return rows.where(F.col("reason").isNull()).select(BODY)


def left_out(rows: DataFrame) -> DataFrame:
    """Those rows of ``read`` that have no message, as rows of ``rejects.SCHEMA``."""
    return rows.where(F.col("reason").isNotNull()).select("value", "reason", "detail")


def with_body(frame: DataFrame) -> DataFrame:
    """Add a column ``body``: the row as a JSON object that keeps nulls."""
    return frame.withColumn(BODY, _object(frame.columns))


def _structured(
    rows: DataFrame, body: str | None, malformed: Column | None = None, text: Column | None = None
) -> DataFrame:
    names = [name for name in rows.columns if name != _CORRUPT]
    if body is not None and body not in names:
        raise InvalidRequest(f"there is no column {body!r}; there are {', '.join(names)}")
    row = _object(names)
    return rows.select(
        (row if body is None else _column(body).cast("string")).alias(BODY),
        (row if text is None else F.coalesce(text, row)).alias("value"),
        # Spark checks a line only in the columns that are asked for; so this asks for all of them.
        (F.lit(False) if malformed is None else malformed | row.isNull()).alias("malformed"),
    )


def _csv(spark: SparkSession, dataset: Dataset) -> DataFrame:
    reader = spark.read.options(
        header=True,
        enforceSchema=False,  # a file with another header is an error, instead of values in the wrong columns
        escape='"',  # RFC 4180
        multiLine=dataset.multiline,
        columnNameOfCorruptRecord=_CORRUPT,
    )
    if dataset.schema is None:
        known = reader.csv(dataset.path).schema
        rows = reader.schema(StructType([*known.fields, StructField(_CORRUPT, StringType())]))
    else:
        rows = reader.schema(f"{dataset.schema}, {_CORRUPT} STRING")
    corrupt = F.col(_CORRUPT)
    return _structured(rows.csv(dataset.path), dataset.body, corrupt.isNotNull(), corrupt)


def _json(spark: SparkSession, dataset: Dataset) -> DataFrame:
    line = F.col("value")
    lines = spark.read.text(dataset.path).where(F.trim(line) != "")
    body = line if dataset.body is None else F.get_json_object(line, _path(dataset.body))
    return lines.select(body.alias(BODY), line, F.json_object_keys(line).isNull().alias("malformed"))


def _parquet(spark: SparkSession, dataset: Dataset) -> DataFrame:
    return _structured(spark.read.parquet(dataset.path), dataset.body)


_READ: Final = f"{BODY} string, value string, malformed boolean"
"""What the readers give."""
_READERS: Final[dict[DatasetFormat, Callable[[SparkSession, Dataset], DataFrame]]] = {
    DatasetFormat.PARQUET: _parquet,
    DatasetFormat.CSV: _csv,
    DatasetFormat.JSON: _json,
}


def _judged() -> tuple[Column, Column]:
    """The reason why a row has no message, and the same in words."""
    body = F.col(BODY)
    most = REQUEST_BYTES - _ENVELOPE
    judgements = (
        (F.col("malformed"), Reason.MALFORMED, "the row cannot be read in its format"),
        (body.isNull(), Reason.NULL, "the body is null"),
        (body == "", Reason.MALFORMED, "the body is empty; queues do not take that"),
        (
            F.octet_length(body) > most,
            Reason.TOO_LARGE,
            f"the body is over {most} bytes; store it elsewhere and send its key",
        ),
    )
    reason, detail = F.lit(None).cast("string"), F.lit(None).cast("string")
    for test, why, words in reversed(judgements):
        reason = F.when(test, F.lit(why.value)).otherwise(reason)
        detail = F.when(test, F.lit(words)).otherwise(detail)
    return reason.alias("reason"), detail.alias("detail")


def _object(names: list[str]) -> Column:
    return F.to_json(F.struct(*map(_column, names)), {"ignoreNullFields": "false"})


def _column(name: str) -> Column:
    """A column by its name, which may have dots."""
    return F.col("`" + name.replace("`", "``") + "`")


def _path(name: str) -> str:
    if "'" in name:
        raise InvalidRequest(f"a field {name!r} cannot be looked up, because its name has a quote; rename it")
    return f"$['{name}']"
