"""The audit job as it is run: on exports."""

import gzip
import json
import re
from typing import Any

import pytest

from fanin.spark.jobs.audit import JOB
from tests.spark.tables import FULL, Tables


def told(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], list[str]]:
    """The summary, and what was said to people."""
    out, err = capsys.readouterr()
    return json.loads(out.splitlines()[-1]), [line for line in err.splitlines() if line.startswith("audit: ")]


def test_tables_without_rows_are_well_but_people_are_warned(spark, tmp_path, capsys):
    batches, words = Tables().export(tmp_path)
    code = JOB.main([f"--batches-export={batches}", f"--words-export={words}", f"--output={tmp_path}/audit"])
    summary, lines = told(capsys)
    assert (code, summary["ok"], summary["batches"]) == (0, True, 0)
    assert summary["warning"] == "there was no batch and no word; look whether these are the tables you mean"
    assert lines[-1] == f"audit: warning: {summary['warning']}"


def test_rows_that_were_read_are_not_kept_where_results_are(spark, tmp_path, capsys):
    # Given a folder for what was read that is in one of the results
    batches, words = Tables().export(tmp_path)
    output = tmp_path / "audit"
    # When an audit is to write there, then it writes nothing
    folders = [f"--output={output}", f"--snapshot={output}/findings/rows"]
    code = JOB.main([f"--batches-export={batches}", f"--words-export={words}", *folders])
    summary, _ = told(capsys)
    assert (code, summary["error"]) == (3, "invalid-request")
    assert "the rows that are read cannot be written to" in summary["detail"]
    assert not output.exists()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("lose a file", "lacks a data file"),
        ("lose a row", "holds 2 rows, and its manifest says 3"),
        ("lose the summary", "not a finished export"),
        ("another sum", "lists 3 rows, and the summary 4"),
        ("incremental", "export the table in full"),
        ("another's file", "a data file of another export"),
    ],
)
def test_a_damaged_export_ends_with_3(spark, tmp_path, capsys, damage, says):
    # Given exports of three words, the words' export damaged
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
