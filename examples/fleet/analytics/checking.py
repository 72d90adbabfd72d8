"""Reads a dataset of telemetry; each row is a measurement, or a reject with its reason."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import DataType, LongType, NumericType, TimestampNTZType, TimestampType

from examples.fleet.analytics.telemetry import REJECTS, SENT_AT, Feed, Reason, Rule
from fanin.errors import InvalidRequest
from fanin.spark import Dataset, open_input

CORRUPT: Final = "_corrupt"
"""The column with the text of what cannot be read in its format; null for all others."""


def read(
    spark: SparkSession, given: Dataset, feed: Feed, replaced: Mapping[str, str] | None = None
) -> DataFrame:
    """Read the columns of a feed, unchanged.

    Args:
        spark: the session.
        given: the dataset. CSV has a header line, with columns in any order; JSON has an object on each line.
        feed: what the rows are.
        replaced: as for ``open_input``.

    Returns:
        The columns that the feed needs, and the optional ones that are there, those of CSV and JSON as text;
        and ``CORRUPT``; all rows.

    Raises:
        InvalidRequest: the path does not exist, or a column is missing.
    """
    optional = [one.name for one in feed.optional]
    opened = open_input(spark, given, fields=[*feed.sources, *optional], replaced=replaced)
    found = {name.lower() for name in opened.columns}
    missing = [name for name in feed.sources if name not in found]
    if missing:
        columns = ", ".join(opened.columns)
        raise InvalidRequest(f"{given.path} has no {', '.join(missing)}; its columns are {columns}")
    there = [*feed.sources, *(name for name in optional if name in found)]
    return opened.rows.select(*(F.col(name).alias(name) for name in there), opened.unreadable.alias(CORRUPT))


def check(raw: DataFrame, feed: Feed) -> DataFrame:
    """Find out of each row what it measures, or why it is left out.

    Of rows about the same trip or fill-up, one counts, no matter which one a task sees first: that which was
    sent last, and of several the smallest. Rows are about the same if they have the same key; trips also if
    their vehicle and time are the same, since a vehicle begins one trip at a time.

    Args:
        raw: of ``read``.
        feed: what the rows are.

    Returns:
        As many rows, with all columns of the feed, and with ``reason``, ``detail`` and ``value`` of
        ``REJECTS``, which are null where the row counts.
    """
    there = [name for name in raw.columns if name != CORRUPT]
    row = F.to_json(F.struct(*(F.col(f"`{name}`") for name in there)), {"ignoreNullFields": "false"})
    lacking = [one for one in feed.optional if one.name not in there]
    clean = raw.select(
        *(_clean(raw, name, feed.nulls) for name in there),
        *(F.lit(None).cast("string").alias(one.name) for one in lacking),
        CORRUPT,
        row.alias("_row"),
    )
    measured = clean.select(
        *(F.expr(one.sql).alias(one.name) for one in (*feed.measures, *feed.optional)),
        _first(_of_sources(feed)).alias("_found"),
        F.coalesce(CORRUPT, "_row").alias("_value"),
    )
    judged = measured.withColumn("_found", F.coalesce("_found", _first(_of_measures(feed)))).select(
        *feed.columns.names,
        F.col("_found.reason").alias("reason"),
        F.col("_found.detail").alias("detail"),
        F.when(F.col("_found").isNotNull(), F.col("_value")).alias("value"),
    )
    by_key = _once(judged, feed, feed.key, feed.key[-1])
    return _once(by_key, feed, [*feed.key[:2], feed.at], feed.at) if feed.one_at_a_time else by_key


def valid_rows(judged: DataFrame, feed: Feed) -> DataFrame:
    """The rows that count, with the columns that the feed must have."""
    return judged.where(F.col("reason").isNull()).select(*feed.schema.names)


def rejected_rows(judged: DataFrame) -> DataFrame:
    """The rows that are left out, as rows of ``REJECTS``."""
    return judged.where(F.col("reason").isNotNull()).select(*REJECTS.names)


def _once(judged: DataFrame, feed: Feed, key: list[str], same_as: str) -> DataFrame:
    """Leave out all rows with the same key but one: those that a later one corrects, and duplicates.

    Rows that are left out already are distributed by their value, since most of them have no key.

    Args:
        judged: rows with the columns of the feed, ``reason``, ``detail`` and ``value``.
        feed: what the rows are.
        key: columns that only rows about the same have in common.
        same_as: what the detail names as common to them.
    """
    columns, sent_at = feed.columns.names, SENT_AT.name
    order = [F.desc_nulls_last(sent_at)] if sent_at in columns else []
    # By a hash first: comparing numbers is faster than comparing names letter by letter.
    among = Window.partitionBy(F.xxhash64("value", *key), "value", *key).orderBy(*order, *columns)
    again = F.col("reason").isNull() & (F.col("_nth") > 1)
    corrected = again & _superseded(feed) if order else F.lit(False)
    own = F.to_json(F.struct(*columns))
    return judged.select(
        "*",
        F.row_number().over(among).alias("_nth"),
        F.first(F.struct(*columns)).over(among).alias("_counts"),
    ).select(
        *columns,
        F.when(corrected, F.lit(Reason.CORRECTED.value))
        .when(again, F.lit(Reason.DUPLICATE.value))
        .otherwise(F.col("reason"))
        .alias("reason"),
        F.when(corrected, F.lit(f"a row with the same {same_as} was sent later"))
        .when(again, F.lit(f"another row has the same {same_as}"))
        .otherwise(F.col("detail"))
        .alias("detail"),
        F.when(again, own).otherwise(F.col("value")).alias("value"),
    )


def _superseded(feed: Feed) -> Column:
    """Whether the row that counts was sent later, and says something else."""
    said = [name for name in feed.columns.names if name != SENT_AT.name]
    differs = ~F.struct(*said).eqNullSafe(F.struct(*(F.col(f"_counts.{name}").alias(name) for name in said)))
    mine, other = F.col(SENT_AT.name), F.col(f"_counts.{SENT_AT.name}")
    return differs & other.isNotNull() & (mine.isNull() | (other > mine))


def _of_sources(feed: Feed) -> list[Rule]:
    """What may be wrong with the columns as they came; the first rule that holds counts."""
    return [
        Rule(Reason.MALFORMED, f"{CORRUPT} IS NOT NULL", "the line cannot be read in its format"),
        *feed.left_out,
        *(Rule(Reason.NULL, f"`{name}` IS NULL", f"{name} is null") for name in feed.sources),
        *(
            Rule(
                Reason.MALFORMED,
                f"`{one.name}` IS NOT NULL AND {one.sql} IS NULL",
                f"{one.name} is not a {_in_words(one.type)}",
            )
            for one in feed.optional
        ),
    ]


def _in_words(kind: DataType) -> str:
    return "number within ±2⁶³" if isinstance(kind, LongType) else kind.simpleString()


def _of_measures(feed: Feed) -> list[Rule]:
    """What may be wrong with the measures."""
    return [
        *(
            Rule(Reason.MALFORMED, f"{one.name} IS NULL", f"{one.name} is not a {_in_words(one.type)}")
            for one in feed.measures
        ),
        *feed.bounds,
    ]


def _first(rules: Sequence[Rule]) -> Column:
    """Reason and detail of the first rule that holds; null if no rule does."""
    return F.coalesce(
        *(
            F.when(
                F.expr(rule.when),
                F.struct(F.lit(rule.reason.value).alias("reason"), F.lit(rule.detail).alias("detail")),
            )
            for rule in rules
        )
    )


def _clean(raw: DataFrame, name: str, nulls: Sequence[str]) -> Column:
    """A column whose blank texts are null; a column that is not text, number or time becomes text."""
    column, type_ = F.col(f"`{name}`"), raw.schema[name].dataType
    if isinstance(type_, NumericType | TimestampType | TimestampNTZType):
        return column
    text = F.trim(column.cast("string"))
    return F.when(~text.isin("", *nulls), text).alias(name)
