"""The audit of an export: it finds what was planted and nothing else; the rest is as the ledger says."""

import json
from base64 import b64encode
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from random import Random
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from fanin.domain.batch import Mode
from fanin.spark.auditing.tables import line, read_export
from fanin.spark.jobs.audit import JOB
from tests.spark.auditing.worlds import World, planted, sound, with_totals, wrong_totals
from tests.spark.export_writer import write_export
from tests.spark.playing import lost, played, ranges_of
from tests.spark.tables import DAY, Tables

LATER = 5_000
"""Milliseconds between the exports of words and of batches."""


class Case(NamedTuple):
    """What was found in a world.

    Attributes:
        batches: by their ids.
        datasets: the rows that were written, by the dataset's name.
        told: what people were told, without where the output is.
    """

    code: int
    summary: dict[str, Any]
    batches: dict[int, dict[str, Any]]
    datasets: dict[str, list[dict[str, Any]]]
    told: list[str]


@pytest.fixture(scope="module")
def world() -> World:
    """Sound batches, random ones, marks that were lost, and planted findings."""
    tables, random = Tables(), Random(1)
    sound(tables)
    with_totals(tables)
    some = played(tables, random)
    tables.dump()
    exact = [row.batch_id for row in tables.memory.batches._rows.values() if row.mode is Mode.EXACT]
    missing = {batch_id: ranges_of(tables, batch_id) for batch_id in exact}
    words = lost(tables, random, some)
    assert len(words) > 5
    expected = {(int(key.partition("/")[0]), key, "lost_parent", False, True) for key in words}
    return World(tables, expected | planted(tables) | wrong_totals(tables), missing)


@pytest.fixture(scope="module")
def case(spark: SparkSession, any_ansi: None, world: World, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The exports of the world, words first, audited once, in the place of what an earlier run left."""
    folder = tmp_path_factory.mktemp("audit")
    batches, words = world.tables.export(folder, later=LATER)
    output = folder / "output"
    (output / "findings").mkdir(parents=True)
    sources = [f"--batches-export={batches}", f"--words-export={words}/manifest-summary.json"]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = JOB.main([*sources, f"--output={output}"])
    names = ("findings", "batches", "missing", "snapshot/batches", "snapshot/words")
    datasets = {name: pq.read_table(output / name).to_pylist() for name in names}
    by_id = {row["batch_id"]: row for row in datasets["batches"]}
    lines = err.getvalue().replace(str(output), "").splitlines()
    told = [line for line in lines if line.startswith("audit: ")]
    return Case(code, json.loads(out.getvalue().splitlines()[-1]), by_id, datasets, told)


def test_each_finding_is_found_and_none_is_invented(world, case):
    # Given sound batches of every state, and batches with one thing wrong each
    # When they are audited
    rows = case.datasets["findings"]
    # Then exactly what was planted is found, once
    found = [(row["batch_id"], row["word_id"], row["kind"], row["in_flux"], row["wrong"]) for row in rows]
    assert set(found) - world.expected == set()
    assert world.expected - set(found) == set()
    assert len(found) == len(world.expected)


def test_the_detail_says_what_contradicts_what(case):
    # Given what was planted, when it is found, then the detail says how it is wrong
    details: dict[str, set[str]] = {}
    for row in case.datasets["findings"]:
        details.setdefault(row["kind"], set()).add(row["detail"])
    assert details["contradiction"] == {
        *("word and done disagree", "items have failed and are pending", "failures above the leaves"),
        *("open, and it has closed_at", "closed, and it has no closed_at", "closed, and it has ended_at"),
        *("closed, and it is partial", "cancelled, and it has no ended_at"),
        "complete, and it has no closed_at",
    }
    assert details["outside"] == {
        *("above the root", "after the last of its level"),
        *("of an estimated batch", "of a batch without items"),
    }
    assert details["expires_early"] == {"1 s before its batch", "3456000 s before its batch"}
    assert details["early"] == {"1 item is pending", "70 items are pending"}
    assert all(detail.startswith("under open#") for detail in details["misfiled"])
    # And a word that nobody wrote is shown as it came, but not a batch, which has a salt
    shown = {detail for detail in details["malformed_row"] if detail is not None}
    assert shown < details["malformed_row"]
    assert all('"word_id"' in detail for detail in shown)


def test_totals_are_what_the_leaves_add_up_to(world, case):
    # Given the batches with totals that nobody has spoilt, one of them estimated
    tables = world.tables
    rows = [row for row in tables.memory.batches._rows.values() if row.batch_id in tables.left]
    told = {row.batch_id: tables.ledger.status(row.batch_id, exact=True).batch for row in rows if row.totals}
    assert all(row.totals_exact or row.mode is Mode.ESTIMATED for row in told.values())
    assert len(told) > 48
    # When they are audited, then theirs are the ledger's, and the others have none
    assert {batch_id: dict(case.batches[batch_id]["totals"]) for batch_id in told} == {
        batch_id: row.totals for batch_id, row in told.items()
    }
    assert {case.batches[row.batch_id]["totals"] for row in rows if not row.totals} == {None}
    # And a sum that no number holds is null, and stops nothing
    (most,) = (
        dict(row["totals"])
        for row in case.batches.values()
        if row["totals"] and ("rows", None) in row["totals"]
    )
    assert most == {"rows": None, "cents": -3_334}
    # And findings name the total
    details = {row["detail"] for row in case.datasets["findings"] if row["kind"] == "wrong_total"}
    assert {"rows: 1 in the row, 833 in the words", "65 tallies for 64 words that are done"} <= details
    assert any(one.startswith("cents: ") and one.endswith(" below") for one in details)


def test_done_and_missing_are_what_the_ledger_says(world, case):
    # Given the batches that nobody has spoilt, but for marks that were lost
    assert len(world.missing) > 100
    # When they are audited, then every range is the ledger's, and so is every count; where nobody knows which
    # items are done, there is none
    rows = world.tables.memory.batches._rows.values()
    estimated = {row.batch_id for row in rows if row.mode is Mode.ESTIMATED and row.items}
    assert estimated
    assert not estimated & {row["batch_id"] for row in case.datasets["missing"]}
    found: dict[int, list[tuple[int, int]]] = {batch_id: [] for batch_id in world.missing}
    for row in case.datasets["missing"]:
        if row["batch_id"] in found:
            found[row["batch_id"]].append((row["start"], row["stop"]))
    assert {batch_id: sorted(ranges) for batch_id, ranges in found.items()} == world.missing
    for batch_id, ranges in world.missing.items():
        row, pending = case.batches[batch_id], sum(stop - start for start, stop in ranges)
        assert (row["pending"], row["done"]) == (pending, row["items"] - pending)
    done = {batch_id: case.batches[batch_id]["done"] for batch_id in world.missing}
    status = world.tables.ledger.status
    assert done == {batch_id: status(batch_id, exact=True).done_min for batch_id in done}


def test_the_verdict_says_what_is_worst(world, case):
    # Given what was planted
    by_kind: dict[str, set[str]] = {}
    spoilt = set()
    for batch_id, _, kind, in_flux, _ in world.expected:
        if batch_id in case.batches:
            verdict = case.batches[batch_id]["verdict"]
            by_kind.setdefault(f"{kind}, in flux" if in_flux else kind, set()).add(verdict)
            spoilt.add(batch_id)
    # When batches are judged, then each has the verdict of its findings
    assert by_kind["stuck"] == {"stuck"}
    assert by_kind["early"] == {"early"}
    assert by_kind["lost_parent"] == {"wrong"}
    assert by_kind["lost_parent, in flux"] == {"in_flux"}
    assert by_kind["early, in flux"] == {"in_flux"}
    judged = {case.batches[batch_id]["verdict"] for batch_id in world.tables.left - spoilt}
    assert judged == {"sound", "counted"}


def test_age_and_rate_come_from_the_row(case):
    # Given an open batch of 64 items, all done, created a day before the export
    row = next(
        row for row in case.batches.values() if (row["items"], row["state"], row["done"]) == (64, "open", 64)
    )
    # When it is audited, then it is a day old, and its rate is over the time in which it can have been active
    assert row["age"] == (DAY + LATER) / 1000
    assert row["rate"] == pytest.approx(64 / 100)
    assert row["pending"] == 0
    # And the age of one that ended 40 s after it was opened, with 30 items done, is that
    ended = [row for row in case.batches.values() if (row["state"], row["done"]) == ("cancelled", 30)]
    assert [(row["age"], row["rate"]) for row in ended] == [(40, 0.75)]


def test_exit_code_and_summary_say_what_the_datasets_say(world, case):
    # Given that something is wrong, when the job ends, then its exit code says so, and its summary what
    summary, batches = case.summary, case.batches.values()
    assert (case.code, summary["ok"], summary["batches"]) == (1, False, len(batches))
    assert summary["verdicts"] == Counter(row["verdict"] for row in batches)
    assert summary["findings"] == Counter(kind for _, _, kind, _, _ in world.expected)
    assert summary["wrong"] == sum(wrong for *_, wrong in world.expected)
    assert summary["in_flux"] == sum(in_flux for *_, in_flux, _ in world.expected)
    assert summary["missing_ranges"] == len(case.datasets["missing"])
    for name in ("items", "done"):
        assert summary[name] == sum(row[name] for row in batches)
    assert summary["words"] == len(world.tables.words) == len(case.datasets["snapshot/words"])


def test_people_are_told_what_is_wrong_and_where_to_look(world, case):
    # Given batches with more findings and with fewer, when they are audited
    found = Counter(batch_id for batch_id, *_, wrong in world.expected if wrong and batch_id in case.batches)
    # Then the one with most comes first, and others in their order
    worst = [case.batches[one] for one in sorted(found, key=lambda one: (-found[one], one))[:5]]
    names = [f" ({row['user_key']})" if row["user_key"] else "" for row in worst]
    assert set(names) == {" (orders)", ""}
    assert case.told[2:] == [
        f"audit: {case.summary['wrong']} findings are wrong. Look at /findings",
        *(
            f"audit: batch {row['batch_id']}{name} is {row['state']}: {row['verdict']},"
            f" {found[row['batch_id']]} wrong"
            for row, name in zip(worst, names, strict=True)
        ),
        "audit: more batches are in the dataset batches, beside it",
    ]


def test_no_dataset_holds_a_salt(world, case):
    # Given the salts of all batches, when the datasets are read, then none is in them, in no form
    salts = {batch.salt for batch in world.tables.memory.batches._rows.values()}
    written = str(case.datasets)
    forms = (form for salt in salts for form in (salt.hex(), b64encode(salt).decode(), str(salt)[2:-1]))
    assert [form for form in forms if form in written] == []
    assert "salt" not in case.datasets["snapshot/batches"][0]


AT = 1_790_000_000_123


def rows(*numbers: int) -> list[str]:
    return [line({"n": {"N": str(n)}}) for n in numbers]


def test_files_that_the_manifest_does_not_name_are_ignored(spark, tmp_path):
    home = write_export(tmp_path, "words", [rows(1, 2), [], rows(3)], at=1, prefix="daily")
    (home / "data" / "stray.json").write_text(rows(9)[0])

    found = read_export(spark, str(home))

    assert found.lines(spark).count() == 3
