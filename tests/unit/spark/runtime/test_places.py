"""The same place by all its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from fanin.spark.runtime.places import canonical


@pytest.mark.parametrize("uri", ["s3://lake/a", "s3a://lake/a/", "s3n://lake/a"])
def test_a_place_on_s3_is_the_same_by_any_scheme(uri: str) -> None:
    assert canonical(uri) == "s3://lake/a/"


@pytest.mark.parametrize("uri", ["s3://lake", "s3a://lake/"])
def test_a_bucket_is_the_place_of_all_that_is_in_it(uri: str) -> None:
    assert canonical("s3://lake/a").startswith(canonical(uri))


def test_a_link_is_the_place_that_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert canonical(f"file:{tmp_path}/link/x") == f"file:{tmp_path.resolve()}/there/x/"
    assert canonical("file:/") == "file:/"


def test_other_file_systems_are_other_places() -> None:
    assert canonical("hdfs://n/a") == "hdfs://n/a/"
