"""The same words by DuckDB, the fastest engine that people have at hand on one machine."""

from pathlib import Path

import duckdb

_WORDS = """
    SELECT sum(bit_count(mask)) FROM (
        SELECT number >> 6 AS word, bit_or(1::UBIGINT << (number & 63)::UBIGINT) AS mask
        FROM (SELECT {number} AS number FROM read_parquet('{folder}/*.parquet'))
        GROUP BY word
    )
"""
ORDINALS = "ordinal"
IDS = "split_part(item, ':', 3)::BIGINT"


def words(folder: Path, number: str, count: int, threads: int) -> None:
    """Aggregate a dataset to words.

    Args:
        folder: of Parquet files.
        number: the items' numbers, as an expression of its columns.
        count: how many different items there are.
        threads: of DuckDB.

    Raises:
        AssertionError: some items are missing.
    """
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute("SET enable_progress_bar = false")
        found = connection.execute(_WORDS.format(number=number, folder=folder)).fetchone()
    if found is None or found[0] != count:
        raise AssertionError(f"DuckDB found {found}, not {count} items")
