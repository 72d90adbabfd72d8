"""Reads a dataset as the bodies of messages, and finds the rows that cannot be one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql import types as T  # noqa: N812

from fanin.client.sqs import REQUEST_BYTES
from fanin.domain.ids import MAX_KEY
from fanin.domain.limits import UNSENDABLE
from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import check_key_type, check_type
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.json_lines import TEXT
from fanin.spark.inputs.names import folded, quoted, with_names
from fanin.spark.inputs.opening import readable
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.unreadable import LINE, PROBLEM, UNKNOWN, not_utf8, readable_columns, undecoded

BODY: Final = "body"
KEY: Final = "key"
"""The column with the keys of items, of rows that have them."""
_MADE: Final = {BODY: "_fanin_body", KEY: "_fanin_key"}
_WHY: Final = "_fanin_why"
"""Column that says why a row has no message: its reason and the same in words; null if it has one."""
_DOUBTFUL: Final = "_fanin_doubtful"
"""Column that says whether a body has a character that is not sent, or may stand for bytes that are none. Of
others nothing needs to be decoded a second time."""
_TEXTS: Final = (T.AtomicType, T.NullType)  # of which Spark makes a text that everybody expects
_NO_TEXT: Final = ", which has no text; make JSON of it, in SQL by to_json(…), or leave body out"
_KEYS: Final = (T.StringType, T.IntegralType, T.DecimalType, T.FloatType, T.DoubleType, T.BooleanType)
"""Types of which a key of JSON is the text that everybody expects."""
MOST_BODY: Final = REQUEST_BYTES - 256
"""Most bytes of a body: the others are for the item id, and for the name and type of its attribute."""
_TIMES: Final = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",  # whatever that of the session is
    # By default Spark cuts a time after its milliseconds.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def of_rows(
    given: DataFrame, body: str | None = None, format_: DatasetFormat | None = None, keys: str | None = None
) -> DataFrame:
    """Make messages of rows; each comes with its message, or with the reason why it has none.

    Args:
        given: the rows; of a dataset with ``LINE`` and ``PROBLEM``.
        body: the column that holds the message. None sends the row as a JSON object that keeps nulls; an
            object of a JSON dataset is sent as it is.
        format_: of the dataset that they are, if they are one.
        keys: the column that holds the keys of items; None if they have none.

    Returns:
        ``body``, the message, and ``key``, if rows have keys; or, where a row has none, the columns of
        rejects: ``value``, which is the row as it came, ``reason`` and ``detail``.
    """
    rows = readable(with_names(given, readable_columns(given)))
    text, wrong = F.col(TEXT), F.lit(None).cast("string")
    if format_ is DatasetFormat.JSON:
        message = text if body is None else F.col(quoted(body))
        value = F.coalesce(LINE, text)
    else:
        names = readable_columns(rows)
        if body is None:
            message = _object(rows, names)
            # Lines of CSV were decoded, and are judged by their own encoding.
            wrong = wrong if format_ is DatasetFormat.CSV else _undecoded(rows, names)
        else:
            message = _text(rows, body, partial(check_type, expected=_NO_TEXT, types=_TEXTS))
        shown = [name for name in names if _key_without_text(rows.schema[name].dataType) is None]
        value = F.coalesce(LINE, _object(rows, shown))
    made = {BODY: message} if keys is None else {BODY: message, KEY: _text(rows, keys, check_key_type)}
    rows = rows.withColumns({_MADE[name]: column for name, column in made.items()})
    rows = rows.withColumn(_DOUBTFUL, F.col(_MADE[BODY]).rlike(UNSENDABLE.replace(UNKNOWN, "\ufffc")))
    judged = rows.withColumn(_WHY, _why(wrong, keyed=KEY in made))
    bad = F.col(_WHY).isNotNull()
    kept = (F.when(~bad, F.col(_MADE[name])).alias(name) for name in made)
    return judged.select(*kept, F.when(bad, value).alias("value"), f"{_WHY}.reason", f"{_WHY}.detail")


def _text(rows: DataFrame, wanted: str, check: Callable[[str, T.DataType], object]) -> Column:
    """The column of that name as text; null if the rows have no columns at all."""
    names, spark = readable_columns(rows), rows.sparkSession
    name = next((one for one in names if folded(spark, one) == folded(spark, wanted)), None)
    if name is None:
        if names:
            raise InvalidRequest(f"there is no column {wanted!r}; there are {', '.join(names)}")
        return F.lit(None).cast("string")
    check(name, rows.schema[name].dataType)
    return F.col(quoted(name)).cast("string")


def with_body(frame: DataFrame) -> DataFrame:
    """Add a column ``body``: the row as a JSON object that keeps nulls.

    It is null where a text of the row is not UTF-8, of which JSON would make another text.

    Raises:
        InvalidRequest: a column has a map whose keys JSON has no form for.
    """
    good = _undecoded(frame, frame.columns).isNull()
    return frame.withColumn(BODY, F.when(good, _object(frame, frame.columns)))


def _why(wrong: Column, *, keyed: bool) -> Column:
    """Judge a row in one pass; ``wrong`` says which of its columns has text that is not UTF-8."""
    body, doubtful = F.col(_MADE[BODY]), F.col(_DOUBTFUL)
    unsendable = "the body has a character that no SQS message may carry"
    larger = f"over {MOST_BODY} bytes; store it elsewhere and send its key"
    judgements: list[tuple[Column, Reason, Column | str]] = [
        (F.col(LINE).isNotNull(), Reason.MALFORMED, F.col(PROBLEM)),
        (body.isNull(), Reason.NULL, "the body is null"),
        (doubtful & wrong.isNotNull(), Reason.MALFORMED, wrong),
        (doubtful & not_utf8(body), Reason.MALFORMED, "the body has bytes that are not UTF-8"),
        (body == "", Reason.MALFORMED, "the body is empty; queues do not take that"),
        (doubtful & body.rlike(UNSENDABLE), Reason.MALFORMED, unsendable),
        (F.octet_length(body) > MOST_BODY, Reason.TOO_LARGE, f"the body is {larger}"),
    ]
    if keyed:  # see ``fanin.domain.ids.checked_key``
        key, larger = F.col(_MADE[KEY]), f"over {MAX_KEY} bytes in UTF-8; take a digest of what is longer"
        judgements += [
            (key.isNull(), Reason.NULL, "the key is null"),
            (not_utf8(key), Reason.MALFORMED, "the key has bytes that are not UTF-8"),
            (key == "", Reason.MALFORMED, "the key is empty"),
            (F.octet_length(key) > MAX_KEY, Reason.TOO_LARGE, f"the key is {larger}"),
        ]
    why = F.lit(None)
    for test, reason, words in reversed(judgements):
        detail = words if isinstance(words, Column) else F.lit(words)
        told = F.struct(F.lit(reason.value).alias("reason"), detail.alias("detail"))
        why = F.when(test, told).otherwise(why)
    return why


def _object(rows: DataFrame, names: Sequence[str]) -> Column:
    if not names:
        return F.lit(None).cast("string")
    for name in names:
        if (key := _key_without_text(rows.schema[name].dataType)) is not None:
            raise InvalidRequest(
                f"the column {name} has a map whose keys are of the type {key.simpleString()}, and keys of"
                " JSON are texts; make texts of them, in SQL by transform_keys(…), or send a column of text"
                " that you make yourself (--body, in Python body)"
            )
    return F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), _TIMES)


def _key_without_text(kind: T.DataType) -> T.DataType | None:
    """The type of keys, somewhere in a type, of which Spark makes a number or a name of Java; or None."""
    if isinstance(kind, T.MapType):
        if not isinstance(kind.keyType, _KEYS):
            return kind.keyType
        return _key_without_text(kind.valueType)
    if isinstance(kind, T.ArrayType):
        return _key_without_text(kind.elementType)
    below = kind.fields if isinstance(kind, T.StructType) else []
    return next((key for one in below if (key := _key_without_text(one.dataType)) is not None), None)


def _undecoded(rows: DataFrame, names: Sequence[str]) -> Column:
    """What is wrong with the first column that has a text which is not UTF-8; null if none has."""
    told = (
        F.when(wrong, F.lit(f"the column {name} has bytes that are not UTF-8"))
        for name in names
        if (wrong := undecoded(F.col(quoted(name)), rows.schema[name].dataType)) is not None
    )
    return F.coalesce(F.lit(None).cast("string"), *told)
