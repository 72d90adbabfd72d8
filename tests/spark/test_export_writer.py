"""Exports as they are written: the folders, manifests and sums that DynamoDB writes."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path

import pytest

from tests.spark.export_writer import write_export

AT = 1_790_000_000_123
ROWS = [["{}", '{"Item": 1}'], [], ["x"]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_export(tmp_path, "words", ROWS, at=AT, prefix="daily")


def manifest(home: Path) -> list[dict]:
    return [json.loads(row) for row in (home / "manifest-files.json").read_text().splitlines()]


def test_an_export_lies_below_its_prefix_under_an_id_of_its_own(tmp_path: Path, home: Path) -> None:
    assert home.parent == tmp_path / "daily" / "AWSDynamoDB"
    assert home.name.startswith(f"{AT:014d}-")
    assert write_export(tmp_path, "batches", ROWS, at=AT, prefix="daily") != home
    assert write_export(tmp_path, "words", ROWS, at=AT).parent == tmp_path / "AWSDynamoDB"


def test_the_summary_says_what_was_exported_and_when(home: Path) -> None:
    summary = json.loads((home / "manifest-summary.json").read_text())
    assert (summary["itemCount"], summary["outputFormat"], summary["exportType"]) == (
        3,
        "DYNAMODB_JSON",
        "FULL_EXPORT",
    )
    assert summary["exportTime"] == "2026-09-21T14:13:20.123Z"
    assert summary["tableArn"].endswith(":table/words")
    assert summary["manifestFilesS3Key"] == f"daily/AWSDynamoDB/{home.name}/manifest-files.json"


def test_every_data_file_is_named_with_its_rows_and_true_sums(tmp_path: Path, home: Path) -> None:
    files = manifest(home)
    assert [one["itemCount"] for one in files] == [2, 0, 1]
    for one, rows in zip(files, ROWS, strict=True):
        packed = (tmp_path / one["dataFileS3Key"]).read_bytes()
        digest = hashlib.md5(packed, usedforsecurity=False)
        assert gzip.decompress(packed).decode() == "".join(f"{row}\n" for row in rows)
        assert base64.b64decode(one["md5Checksum"]) == digest.digest()
        assert one["etag"] == f"{digest.hexdigest()}-1"


@pytest.mark.parametrize("name", ["manifest-summary", "manifest-files"])
def test_manifests_have_checksums_beside_them(home: Path, name: str) -> None:
    digest = hashlib.md5((home / f"{name}.json").read_bytes(), usedforsecurity=False)
    assert base64.b64decode((home / f"{name}.checksum").read_text()) == digest.digest()


def test_the_same_rows_are_the_same_files(tmp_path: Path) -> None:
    first, again = (write_export(tmp_path / name, "words", ROWS, at=AT) for name in ("a", "b"))
    assert manifest(first) == manifest(again)
