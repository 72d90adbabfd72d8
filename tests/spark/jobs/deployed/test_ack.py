"""The ack job on the stack: what it says, what it leaves out, and what it makes of odd input."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from fanin.domain.batch import State
from fanin.spark.jobs.ack import JOB
from fanin.spark.runtime.service import Service
from tests.spark.items import ITEMS, filled, written

pytestmark = pytest.mark.emulator


def test_a_dataset_completes_its_batch_and_the_summary_says_what_was_left_out(
    spark: SparkSession, service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given every item of a batch once, save that ten failed, two of which are acknowledged as well
    batch, group = filled(service)
    values: list[object] = [*group, group[63], group[63], "nonsense", None, group[1], group[2]]
    reasons: list[object] = [None] * ITEMS + [None] * 4 + ["too old"] * 2
    for at in range(100, 108):
        reasons[at] = "torn"
    shuffled = list(zip(values, reasons, strict=True))
    random.Random(1).shuffle(shuffled)  # noqa: S311
    folder = written(tmp_path / "acks", item=[v for v, _ in shuffled], reason=[r for _, r in shuffled])
    arguments = ["--input", folder, "--work", str(tmp_path / "work")]

    # When the job runs, and runs again
    codes = [JOB.main(arguments), JOB.main(arguments)]

    # Then the batch is complete, with the failures, and nothing is lost
    first, again = (json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{"))
    assert codes == [0, 0]
    expected = {"way": "parquet", "rows": ITEMS + 6, "distinct": ITEMS - 10, "failed": 10, "completed": 1}
    expected["rejects"] = {"duplicate": 4, "malformed": 1, "null": 1}
    for summary in (first, again):
        assert {name: summary[name] for name in expected} == expected
    status = service.ledger().status(batch.batch_id, exact=True)
    assert (status.batch.state, status.done_min) == (State.COMPLETE, ITEMS)
    failures = service.ledger().failures(batch.batch_id, limit=20).failures
    assert Counter(f.reason for f in failures) == {"torn": 8, "too old": 2}
    # And items that were done before are counted as such. A process that saw the batch complete then writes
    # nothing; for one that did not, each word is refused once
    assert first["first"] + first["ranged"] == ITEMS
    assert (again["duplicates"], again["first"], again["ranged"]) == (ITEMS, 0, 0)
    assert again["writes"] <= again["words"]
    # Whole words cost no write of their own
    assert first["words"] <= 6
    rejects = spark.read.parquet(str(tmp_path / "work" / "rejects")).select("value", "reason").collect()
    assert Counter(map(tuple, rejects)) == {
        (group[63], "duplicate"): 2,
        (group[1], "duplicate"): 1,
        (group[2], "duplicate"): 1,
        ("nonsense", "malformed"): 1,
        (None, "null"): 1,
    }


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_text_is_read_by_its_suffix_and_a_bad_line_is_a_reject(
    spark: SparkSession, service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    # Given every item of a batch as text, in a file with one bad line
    batch, group = filled(service)
    lines = ["item", *group] if suffix == "csv" else [json.dumps({"item": item}) for item in group]
    file = tmp_path / f"acks.{suffix}"
    file.write_text("\n".join([*lines, "{nonsense"]))

    # When the job gets only its path
    code = JOB.main(["--input", str(file), "--work", str(tmp_path / "work")])

    # Then the batch is complete, and the line is among the rejects as it came
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, summary["rows"], summary["distinct"]) == (0, ITEMS + 1, ITEMS)
    assert service.ledger().status(batch.batch_id).batch.state is State.COMPLETE
    rejects = spark.read.parquet(str(tmp_path / "work" / "rejects")).select("value", "reason")
    assert [tuple(row) for row in rejects.collect()] == [("{nonsense", "malformed")]


@pytest.mark.parametrize(
    "options", [[], ["--format", "csv"], ["--format", "json"], ["--batch", "7"]], ids=" ".join
)
def test_an_empty_folder_is_nothing_to_acknowledge(
    spark: SparkSession,
    service: Service,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
) -> None:
    # Given a folder without a file
    (tmp_path / "acks").mkdir()

    # When it is acknowledged
    code = JOB.main(["--input", str(tmp_path / "acks"), "--work", str(tmp_path / "work"), *options])

    # Then all is well, and nothing was to be done
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, summary["rows"], summary["rejects"], summary["writes"]) == (0, 0, {}, 0)


@pytest.mark.parametrize(
    ("row", "options", "value"),
    [
        ('{"batch_id": 7, "ordinal": 3}', [], "3"),
        ('{"item": "7:g:3"}', ["--ordinals"], '{"batch_id":null,"ordinal":"7:g:3"}'),
    ],
    ids=["ordinals, not asked for", "ids, not asked for"],
)
@pytest.mark.usefixtures("spark", "service")
def test_a_row_that_names_its_item_the_other_way_is_a_reject(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str, options: list[str], value: str
) -> None:
    # Given a row of JSON that names an item, but not in the way that the job expects
    file = tmp_path / "acks.json"
    file.write_text(row)

    # When it is acknowledged
    JOB.main(["--input", str(file), "--work", str(tmp_path / "work"), *options])

    # Then the row is among the rejects, and says what it had for a name
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (summary["rows"], summary["distinct"], summary["rejects"]) == (1, 0, {"malformed": 1})
    assert pq.read_table(tmp_path / "work" / "rejects")["value"].to_pylist() == [value]
