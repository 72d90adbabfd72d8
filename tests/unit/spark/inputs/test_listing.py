"""The same place, whichever of Hadoop's connectors a path names."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.inputs import listing
from fanin.spark.inputs.listing import FoundFile, check_not_replaced


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session, of which Hadoop is not asked what a path is in full."""
    monkeypatch.setattr(listing, "qualified", lambda _, path: path)


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("s3://lake/work/rejects/part-0", "s3a://lake/work/rejects"),
        ("s3n://lake/work/rejects/part-0", "s3://lake/work"),
        ("hdfs://n/work/part-0", "hdfs://n/work"),
    ],
)
def test_s3_s3a_and_s3n_name_the_same_place(spark: Any, file: str, folder: str) -> None:
    with pytest.raises(InvalidRequest, match="which this job replaces; name another folder with --work"):
        check_not_replaced(spark, file, [FoundFile(file, 1, 0)], {folder: "--work"})


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("s3://lake/work/rejects/part-0", "s3a://other/work/rejects"),
        ("hdfs://n/work/part-0", "s3://n/work"),
        ("s3://lake/work/rejects-2/part-0", "s3://lake/work/rejects"),
    ],
)
def test_other_buckets_and_schemes_are_other_places(spark: Any, file: str, folder: str) -> None:
    check_not_replaced(spark, file, [FoundFile(file, 1, 0)], {folder: "--work"})
