"""The ack job on the stack: what it says, what it leaves out, and what it makes of odd input."""

import json
import random
from collections import Counter

import pyarrow.parquet as pq
import pytest

from fanin.domain.batch import State
from fanin.spark.ack import coalescing
from fanin.spark.jobs.ack import JOB
from fanin.spark.jobs.running import FAILED
from tests.spark.datasets import parquet
from tests.spark.items import ITEMS, filled, written


def test_a_dataset_completes_its_batch_and_the_summary_says_what_was_left_out(
    spark, service, tmp_path, capsys
):
    # Given every item of a batch once, save that ten failed, two of which are acknowledged as well
    batch, group = filled(service)
    values: list[object] = [*group, group[63], group[63], "nonsense", None, group[1], group[2]]
    reasons: list[object] = [None] * ITEMS + [None] * 4 + ["too old"] * 2
    for at in range(100, 108):
        reasons[at] = "torn"
    shuffled = list(zip(values, reasons, strict=True))
    random.Random(1).shuffle(shuffled)
    folder = written(tmp_path / "acks", item=[v for v, _ in shuffled], reason=[r for _, r in shuffled])
    arguments = ["--input", folder, "--work", str(tmp_path / "work")]
    # When the job runs, and runs again
    codes = [JOB.main(arguments), JOB.main(arguments)]
    # Then the batch is complete, with the failures, and nothing is lost
    first, again = (json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{"))
    assert codes == [0, 0]
    expected = {"rows": ITEMS + 6, "distinct": ITEMS - 10, "failed": 10, "completed": 1}
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


def test_few_rows_are_acknowledged_as_many_are(spark, service, tmp_path, capsys, monkeypatch):
    # Given two batches, and a small file for each, with the same rows
    told, left_out = [], []
    other = {"seconds", "writes", "acks_per_write"}
    for most in (coalescing.SMALL, 0):
        batch, group = filled(service)
        rows = [group[0], group[0], group[70], f"{group.prefix}:4000000000", None, "x" * 9_000]
        file = tmp_path / f"most-{most}.jsonl"
        file.write_text("\n".join([*(json.dumps({"item": row}) for row in rows), "{nonsense"]))
        # When one is acknowledged as few rows, and one as many
        monkeypatch.setattr(coalescing, "SMALL", most)
        work = tmp_path / f"work-{most}"
        assert JOB.main(["--input", str(file), "--work", str(work)]) == 0
        summary = json.loads(capsys.readouterr().out.splitlines()[-1])
        told.append({name: value for name, value in summary.items() if name not in other})
        rejects = pq.read_table(work / "rejects").to_pylist()
        left_out.append(
            sorted((row["reason"], str(row["value"]).replace(group.prefix, "")) for row in rejects)
        )
        assert service.ledger().pending(batch.batch_id, 0, 80) == set(range(80)) - {0, 70}
    # Then both say the same, and leave out the same
    assert told[0] == told[1]
    assert told[0]["rejects"] == {"duplicate": 1, "malformed": 2, "foreign": 1, "null": 1}
    assert left_out[0] == left_out[1]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("most", [coalescing.SMALL, 0], ids=["few", "many"])
def test_rejects_do_not_replace_what_is_somebody_elses(service, tmp_path, capsys, monkeypatch, *, most):
    # Given a folder of somebody's, and a dataset, which is small or not
    monkeypatch.setattr(coalescing, "SMALL", most)
    batch, group = filled(service)
    orders = tmp_path / "orders" / "day=1" / "part-0.csv"
    orders.parent.mkdir(parents=True)
    orders.write_text("mine")
    acks = written(tmp_path / "acks", item=[group[0]])
    # When that folder is named for the rejects
    code = JOB.main(
        ["--input", acks, "--work", str(tmp_path / "work"), "--rejects", str(tmp_path / "orders")]
    )
    # Then nothing is deleted, and nothing was acknowledged
    assert code == FAILED
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (
        "/orders is not the folder of an earlier run, which jobs replace: day=1 is in it" in summary["detail"]
    )
    assert orders.read_text() == "mine"
    assert service.ledger().status(batch.batch_id, exact=True).done_min == 0


def test_every_file_counts_by_the_names_of_its_columns(spark, service, tmp_path, capsys):
    # Given files of one folder, one with the columns in another order, one with reasons, in another case
    batch, group = filled(service)
    folder = tmp_path / "acks of today"
    rows = [
        ("a", {"item": group[0], "note": group[9]}),
        ("b", {"note": group[9], "item": group[1]}),
        ("sub/c", {"Reason": 'late, and "torn"', "item": group[2]}),
        ("sub/d", {"item": "x" * 10_000}),
    ]
    for name, row in rows:
        parquet(folder / f"{name}.parquet", **{column: [value] for column, value in row.items()})
    # When they are acknowledged
    code = JOB.main(["--input", str(folder), "--work", str(tmp_path / "work")])
    # Then the items of the column item are done, nobody else's, and one has failed
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (code, summary["distinct"], summary["failed"], summary["rejects"]) == (0, 2, 1, {"malformed": 1})
    ledger = service.ledger()
    assert ledger.pending(batch.batch_id, 0, 10) == set(range(3, 10))
    (failure,) = ledger.failures(batch.batch_id, limit=5).failures
    assert (failure.item, failure.reason) == (group[2], 'late, and "torn"')
    assert json.loads((tmp_path / "work" / "summary.json").read_text()) == summary


def test_a_line_that_cannot_be_read_is_not_taken_for_an_item(spark, service, tmp_path, capsys):
    # Given lines that would be items or ordinals if they were values
    batch, group = filled(service)
    (tmp_path / "a.csv").write_text(f"item,reason\n{group[0]}\n{group[1]},\n")
    (tmp_path / "b.csv").write_text("ordinal,reason\n3\n4,\n")
    (tmp_path / "c.json").write_text(f'{group[5]}\n{{"item": "{group[6]}"}}\n')
    # When they are acknowledged, then they are rejects as they came
    for name, more, value in (
        ("a.csv", [], group[0]),
        ("b.csv", ["--batch", str(batch.batch_id)], '{"ordinal":"3"}'),
        ("c.json", [], group[5]),
    ):
        assert JOB.main(["--input", f"{tmp_path}/{name}", "--work", f"{tmp_path}/work", *more]) == 0
        summary = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (summary["rows"], summary["distinct"], summary["rejects"]) == (2, 1, {"malformed": 1})
        rejects = pq.read_table(tmp_path / "work" / "rejects").to_pylist()
        assert [(row["value"], row["detail"]) for row in rejects] == [
            (value, "the line cannot be read in its format")
        ]
    assert service.ledger().pending(batch.batch_id, 0, 8) == {0, 2, 3, 5, 7}


def test_too_many_rejects_acknowledge_nothing(spark, service, tmp_path, capsys):
    # Given a row with an item, one that failed, and two that are not items
    batch, group = filled(service)
    folder = written(
        tmp_path / "acks", item=[group[0], group[1], "x", "y"], reason=[None, "torn", None, None]
    )
    arguments = ["--input", folder, "--work", str(tmp_path / "work")]
    # When one may be left out, then nothing is done; when two may be, the others are
    assert JOB.main([*arguments, "--max-rejects", "1"]) == 1
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (summary["error"], summary["rejects"], summary["rows"]) == (
        "too-many-rejects",
        {"malformed": 2},
        4,
    )
    assert service.ledger().pending(batch.batch_id, 0, 2) == {0, 1}
    assert JOB.main([*arguments, "--max-rejects", "50%"]) == 0
    assert service.ledger().pending(batch.batch_id, 0, 2) == set()


def test_an_empty_folder_is_nothing_to_acknowledge(spark, service, tmp_path, capsys):
    # Given a folder without a file
    (tmp_path / "acks").mkdir()
    # When it is acknowledged
    code = JOB.main(["--input", str(tmp_path / "acks"), "--work", str(tmp_path / "work")])
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
def test_a_row_that_names_its_item_the_other_way_is_a_reject(tmp_path, capsys, row, options, value):
    # Given a row of JSON that names an item, but not in the way that the job expects
    file = tmp_path / "acks.json"
    file.write_text(row)
    # When it is acknowledged
    JOB.main(["--input", str(file), "--work", str(tmp_path / "work"), "--max-rejects", "1", *options])
    # Then the row is among the rejects, and says what it had for a name
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (summary["rows"], summary["distinct"], summary["rejects"]) == (1, 0, {"malformed": 1})
    assert pq.read_table(tmp_path / "work" / "rejects")["value"].to_pylist() == [value]
