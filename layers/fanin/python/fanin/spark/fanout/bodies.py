"""Reads a dataset as the bodies of messages, and finds the rows that cannot be one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StructType

from fanin.client.sqs_messages import REQUEST_BYTES
from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import DatasetFormat, Dialect, dataset_format, format_of_path
from fanin.spark.inputs.json_lines import TEXT
from fanin.spark.inputs.names import find_name, quoted
from fanin.spark.inputs.opening import Input, open_input
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.unreadable import LINE, PROBLEM, readable_columns

BODY: Final = "body"
_ENVELOPE: Final = 256
"""Bytes of a message besides its body: the item id, and the name and type of its attribute."""
_TIMES: Final = {
    "ignoreNullFields": "false",
    # By default Spark cuts a time after its milliseconds.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True)
class Dataset:
    """Rows to send.

    Raises:
        InvalidRequest: there is no such format.

    Attributes:
        path: file, folder or pattern, as Spark takes it; or the name of a table.
        format: or its name, such as ``csv``. None takes that of the table that the folder is, or the one that
            the suffix names.
        body: the column that holds the message. None sends the row as a JSON object that keeps nulls; an
            object of a JSON dataset is sent as it is.
        schema: the columns of a CSV dataset, in DDL; without it all values are text.
        dialect: how a CSV or JSON dataset is written down.
    """

    path: str
    format: DatasetFormat | None = None
    body: str | None = None
    schema: str | None = None
    dialect: Dialect = Dialect()

    def __post_init__(self) -> None:
        if self.format is not None:
            object.__setattr__(self, "format", dataset_format(self.format))

    def describe(self) -> dict[str, Any]:
        """Everything but the data that the messages depend on, as JSON."""
        return {
            "path": self.path,
            "format": (self.format or format_of_path(self.path)).value,
            "body": self.body,
            "schema": self.schema,
            "multiline": self.dialect.multiline,
            **self.dialect.differences(),
        }

    @property
    def input(self) -> Input:
        return Input(self.path, self.format, self.dialect)


def read(spark: SparkSession, dataset: Dataset, replaced: Mapping[str, str] | None = None) -> DataFrame:
    """Read a dataset; each row comes with its message, or with the reason why it has none.

    Args:
        spark: the session.
        dataset: the dataset.
        replaced: as for ``open_input``.

    Returns:
        ``body``; ``value``, the row as it came; ``reason`` and ``detail``, null where the row has a message.

    Raises:
        InvalidRequest: the dataset or the column does not exist, or the format does not take a schema.
    """
    format_ = dataset.format or format_of_path(dataset.path)
    if dataset.schema is not None and format_ is not DatasetFormat.CSV:
        raise InvalidRequest(f"a {format_} dataset takes no schema, since it has its own; only CSV does")
    fields = [] if dataset.body is None else [dataset.body]
    types = _types(spark, dataset.schema)
    opened = open_input(spark, dataset.input, fields=fields, types=types, replaced=replaced)
    text, line = F.col(TEXT), F.col(LINE)
    if opened.format is DatasetFormat.JSON:
        body = text if dataset.body is None else F.col(quoted(dataset.body))
        value = F.coalesce(line, text)
        rows = opened.rows.select(body.alias(BODY), value.alias("value"), LINE, PROBLEM)
    else:
        row = _object(readable_columns(opened.rows))
        body = row if dataset.body is None else _body(opened.rows, dataset.body)
        value = F.when(line.isNotNull(), line).otherwise(row)
        rows = opened.rows.select(body.alias(BODY), value.alias("value"), LINE, PROBLEM)
    return rows.select(BODY, "value", *_judged())


def _types(spark: SparkSession, schema: str | None) -> StructType | None:
    try:
        return None if schema is None else spark.createDataFrame([], schema).schema
    except ParseException as error:
        why = str(error).splitlines()[0]
        raise InvalidRequest(
            f"the schema {schema!r} is not DDL, such as 'id BIGINT, name STRING': {why}"
        ) from error


def _body(rows: DataFrame, body: str) -> Column:
    names = readable_columns(rows)
    name = find_name(rows.sparkSession, names, body)
    if name is None and names:
        raise InvalidRequest(f"there is no column {body!r}; there are {', '.join(names)}")
    return (F.lit(None) if name is None else F.col(quoted(name))).cast("string")


def messages(rows: DataFrame) -> DataFrame:
    """The bodies of those rows of ``read`` that have one."""
    return rows.where(F.col("reason").isNull()).select(BODY)


def left_out(rows: DataFrame) -> DataFrame:
    """Those rows of ``read`` that have no message, as rows of ``rejects.SCHEMA``."""
    return rows.where(F.col("reason").isNotNull()).select("value", "reason", "detail")


def with_body(frame: DataFrame) -> DataFrame:
    """Add a column ``body``: the row as a JSON object that keeps nulls."""
    return frame.withColumn(BODY, _object(frame.columns))


def _judged() -> tuple[Column, Column]:
    """The reason why a row has no message, and the same in words."""
    body = F.col(BODY)
    most = REQUEST_BYTES - _ENVELOPE
    judgements = (
        (F.col(LINE).isNotNull(), Reason.MALFORMED, F.col(PROBLEM)),
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
        detail = F.when(test, words if isinstance(words, Column) else F.lit(words)).otherwise(detail)
    return reason.alias("reason"), detail.alias("detail")


def _object(names: list[str]) -> Column:
    if not names:
        return F.lit(None).cast("string")
    return F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), _TIMES)
