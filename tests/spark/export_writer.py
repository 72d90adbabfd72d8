"""Writes exports in the format of DynamoDB, since emulators do not export.

For tests and the bench. To ``audit.export`` they look like real ones: they have the same
folders and manifests, with the true sizes, MD5 sums and ETags.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fanin.spark.auditing.tables import FORMAT, FULL, SUMMARY

_VERSION = "2020-06-30"


def write_export(
    folder: Path, table: str, files: Iterable[Iterable[str]], *, at: int, prefix: str | None = None
) -> Path:
    """Write an export.

    Args:
        folder: stands for the bucket.
        table: name of the table, for the manifest and for the id of the export.
        files: the lines of each data file; one file at a time is in memory.
        at: milliseconds since the epoch; the moment whose rows it has.
        prefix: of the keys in the bucket.

    Returns:
        The folder of the export: ``AWSDynamoDB/<id>`` below ``folder`` and ``prefix``.
    """
    export_id = f"{at:014d}-{hashlib.sha256(table.encode()).hexdigest()[:8]}"
    root = "/".join(part for part in (prefix, "AWSDynamoDB", export_id) if part)
    home = folder / root
    (home / "data").mkdir(parents=True, exist_ok=True)
    (home / "_started").touch()
    rows = [_data_file(home, f"{root}/data", number, lines) for number, lines in enumerate(files)]
    moment = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    arn = f"arn:aws:dynamodb:eu-west-1:123456789012:table/{table}"
    summary = {
        "version": _VERSION,
        "exportArn": f"{arn}/export/{export_id}",
        "startTime": moment,
        "endTime": moment,
        "tableArn": arn,
        "tableId": export_id,
        "exportTime": moment,
        "s3Bucket": folder.name,
        "s3Prefix": prefix,
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"{root}/manifest-files.json",
        "billedSizeBytes": 0,
        "itemCount": sum(row["itemCount"] for row in rows),
        "outputFormat": FORMAT,
        "exportType": FULL,
    }
    _manifest(home / "manifest-files.json", "".join(f"{json.dumps(row)}\n" for row in rows))
    _manifest(home / SUMMARY, json.dumps(summary))
    return home


def _data_file(home: Path, root: str, number: int, lines: Iterable[str]) -> dict[str, Any]:
    rows: Sequence[str] = list(lines)
    name = f"{hashlib.sha256(str(number).encode()).hexdigest()[:26]}.json.gz"
    packed = gzip.compress("".join(f"{row}\n" for row in rows).encode(), compresslevel=1, mtime=0)
    (home / "data" / name).write_bytes(packed)
    digest = hashlib.md5(packed, usedforsecurity=False)
    return {
        "itemCount": len(rows),
        "md5Checksum": base64.b64encode(digest.digest()).decode(),
        "etag": f"{digest.hexdigest()}-1",
        "dataFileS3Key": f"{root}/{name}",
    }


def _manifest(path: Path, text: str) -> None:
    path.write_text(text)
    digest = hashlib.md5(text.encode(), usedforsecurity=False)
    path.with_suffix(".checksum").write_text(base64.b64encode(digest.digest()).decode())
