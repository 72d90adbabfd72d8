"""The same place, whichever of Hadoop's connectors a path names."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.inputs import listing
from fanin.spark.inputs.listing import FoundFile, refuse_replaced


@pytest.mark.parametrize(
    ("file", "folder", "same"),
    [
        ("s3://lake/work/rejects/part-0", "s3a://lake/work/rejects", True),
        ("s3n://lake/work/rejects/part-0", "s3://lake/work", True),
        ("s3://lake/work/rejects/part-0", "s3a://other/work/rejects", False),
        ("hdfs://n/work/part-0", "s3://n/work", False),
        ("hdfs://n/work/part-0", "hdfs://n/work", True),
    ],
)
def test_a_place_on_s3_is_the_same_by_any_scheme(
    monkeypatch: pytest.MonkeyPatch, file: str, folder: str, same: bool
) -> None:
    monkeypatch.setattr(listing, "qualified", lambda _, path: path)
    nobody: Any = None
    files = [FoundFile(file, 1, 0)]
    if not same:
        refuse_replaced(nobody, file, files, {folder: "--work"})
        return
    with pytest.raises(InvalidRequest, match="which this job replaces"):
        refuse_replaced(nobody, file, files, {folder: "--work"})
