"""Which format a dataset has when nobody says it."""

import pytest

from fanin.spark.inputs.formats import format_of_path


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("s3://bucket/trips", "parquet"),
        ("trips.parquet/", "parquet"),
        ("a.b/trips.CSV.gz", "csv"),
        ("a.csv/trips", "parquet"),
        ("trips-2024.03.jsonl", "json"),
        ("acks/*.ndjson", "json"),
    ],
)
def test_suffixes_say_the_format(path: str, form: str) -> None:
    # Given a path, when nobody says its format, then the suffix does
    assert format_of_path(path) == form
