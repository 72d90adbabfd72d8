"""Rows that know how often they were evaluated, and are not the same twice."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812


class Evaluations:
    """Counts how often each row of a DataFrame is evaluated, in whatever process.

    Args:
        folder: for a file of each evaluation.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def counted(self, rows: DataFrame, by: str, column: str, value: Callable[[Any, int], Any]) -> DataFrame:
        """Add a column of text.

        Args:
            rows: the DataFrame.
            by: a column that tells its rows apart.
            column: the name of the new one.
            value: makes its value of that of ``by`` and the number of this evaluation of the row, from 0.
        """
        folder = str(self._folder)

        def evaluate(one: Any) -> Any:
            number = 0
            while True:
                try:
                    Path(folder, f"{one}.{number}").touch(exist_ok=False)
                except FileExistsError:
                    number += 1
                else:
                    return value(one, number)

        return rows.withColumn(column, F.udf(evaluate, "string").asNondeterministic()(by))

    @property
    def times(self) -> Counter[str]:
        """Row → how often it was evaluated."""
        return Counter(path.stem for path in self._folder.iterdir())
