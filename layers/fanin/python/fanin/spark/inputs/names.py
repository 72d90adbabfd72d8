"""Names of columns, compared as the session does: by default without regard to case."""

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from fanin.errors import InvalidRequest


def case_sensitive(spark: SparkSession) -> bool:
    """Whether names that differ in case are different columns."""
    return spark.conf.get("spark.sql.caseSensitive") == "true"


def folded(spark: SparkSession, name: str) -> str:
    """A name such that names of the same column are equal."""
    return name if case_sensitive(spark) else name.lower()


def quoted(name: str) -> str:
    """A name as SQL takes it, which may have dots."""
    return "`" + name.replace("`", "``") + "`"


def with_names(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    """Give columns the names that the job knows them by, for example ``reason`` to ``Reason``."""
    spark = frame.sparkSession
    known = {folded(spark, name): name for name in names}
    taken: dict[str, str] = {}
    columns: list[str] = []
    for column in frame.columns:
        name = known.get(folded(spark, column), column)
        if name in taken and name in known.values():
            raise InvalidRequest(
                f"the input has two columns {name!r}: {taken[name]!r} and {column!r}; rename one of them"
            )
        taken[name] = column
        columns.append(name)
    return frame if columns == frame.columns else frame.toDF(*columns)
