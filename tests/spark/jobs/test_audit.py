"""The audit job as it is run: on exports."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.spark.jobs.audit import JOB
from tests.spark.tables import FULL, Tables


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("lose a file", "lacks a data file"),
        ("lose a row", "holds 1 rows, and its manifest says 2"),
        ("lose the summary", "not a finished export"),
        ("another sum", "lists 3 rows, and the summary 4"),
        ("incremental", "export the table in full"),
        ("another's file", "a data file of another export"),
    ],
)
def test_a_damaged_export_ends_with_3(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: str,
    says: str,
) -> None:
    # Given exports of three words, the words' export damaged
    import gzip
    import re

    tables = Tables()
    batch, _ = tables.batch(200)
    tables.dump()
    for number in range(3):
        tables.set_word(batch, 0, number, FULL - 1)
    batches, words = tables.export(tmp_path, files=2)
    summary, files = words / "manifest-summary.json", words / "manifest-files.json"
    data = words / "data" / json.loads(files.read_text().splitlines()[0])["dataFileS3Key"].rsplit("/", 1)[-1]
    match damage:
        case "lose a file":
            data.unlink()
        case "lose a row":
            data.write_bytes(gzip.compress(gzip.decompress(data.read_bytes()).splitlines()[0] + b"\n"))
        case "lose the summary":
            summary.unlink()
        case "another sum":
            summary.write_text(summary.read_text().replace('"itemCount": 3', '"itemCount": 4'))
        case "incremental":
            summary.write_text(summary.read_text().replace("FULL_EXPORT", "INCREMENTAL_EXPORT"))
        case "another's file":
            files.write_text(files.read_text().replace("AWSDynamoDB/", "AWSDynamoDB/0"))

    # When the job is run
    code = JOB.main(
        [f"--batches-export={batches}", f"--words-export={words}", f"--output={tmp_path / 'audit'}"]
    )

    # Then it has not judged anything, and says why
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, answer["ok"], answer["error"]) == (3, False, "export-damaged")
    assert re.search(says, answer["detail"])
    assert not (tmp_path / "audit" / "findings").exists()
