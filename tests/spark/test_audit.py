"""The audit: what is planted is found, and nothing is invented."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.testing import assertDataFrameEqual

from fanin.domain.acks import Failure
from fanin.domain.batch import Batch, Mode, OnDeadline, OpenBatch, State
from fanin.spark.audit.report import audit
from tests.spark.tables import DAY, FULL, Tables, word_row

Found = tuple[int | None, str | None, str, bool, bool]


class Case(NamedTuple):
    """A world, what should be found in it, and what was."""

    tables: Tables
    expected: set[Found]
    batches: DataFrame
    missing: DataFrame
    findings: DataFrame
    verdicts: dict[int, str]


def wrong(batch: Batch | None, kind: str, word: str | None = None) -> Found:
    return (batch.batch_id if batch else None, word, kind, False, True)


def sound(tables: Tables) -> list[Batch]:
    """Batches of every kind and state, all as the ledger left them."""
    made = []
    for items in (1, 63, 64, 65, 4096, 4097, 5000, 64**3, 64**3 * 3 + 70):
        for closed in (True, False):
            batch, group = tables.batch(items, closed=closed)
            tables.ack(group, (0, max(1, items // 3)), (items - 1, items))
            made.append(batch)
            batch, group = tables.batch(items, closed=closed)
            tables.ack(group, (0, items))  # the open ones are marked above what becomes the root
            made.append(batch)
    deep, group = tables.batch(2**32 - 1, closed=False)
    tables.ack(group, (0, 2**32 - 2))
    group = tables.ledger.add(deep.batch_id, 2**31)
    tables.ledger.close(deep.batch_id)
    tables.ack(group, (7, 2**31))
    grown, group = tables.batch(64, closed=False)
    tables.ack(group, (0, 64))
    tables.ledger.add(grown.batch_id, 6)
    tables.ledger.close(grown.batch_id)
    failing, group = tables.batch(70)
    tables.ledger.fail([Failure(group[63], "broken"), Failure(group[5], "broken")])
    cancelled, group = tables.batch(100, closed=False)
    tables.ack(group, (64, 100))
    tables.ledger.cancel(cancelled.batch_id)
    partial, group = tables.batch(
        10, deadline=tables.memory.clock.now() + 1_000_000, on_deadline=OnDeadline.COMPLETE
    )
    tables.memory.batches.end(
        partial.batch_id, State.COMPLETE, now=tables.memory.clock.now(), sources=(State.CLOSED,), partial=True
    )
    empty, _ = tables.batch(1, closed=False)
    tables.ledger.cancel(empty.batch_id)
    estimated = tables.ledger.open(OpenBatch(mode=Mode.ESTIMATED))
    tables.ledger.add(estimated.batch_id, 9)
    return [*made, deep, grown, failing, cancelled, partial, empty, estimated]


def planted(tables: Tables) -> set[Found]:  # noqa: PLR0915
    """Every kind of finding, each in a batch of its own."""
    expected: set[Found] = set()

    # a finished leaf whose parent's bit was lost, in three places of a tree, one of them deep
    for items, level, number in ((5000, 0, 3), (64**3 * 3, 2, 1), (64**4 * 5, 3, 2)):
        batch, group = tables.batch(items)
        span = 64 ** (level + 1)
        tables.ack(group, (number * span, (number + 1) * span))
        tables.dump_batch(batch)
        key = tables.set_word(batch, level, number, 0)
        tables.words.pop(f"{batch.batch_id}/{level + 1}/{number // 64}")
        expected.add(wrong(batch, "lost_parent", key))
    # the residue of the last word of a closed batch; in an open one it means nothing
    for closed in (True, False):
        batch, group = tables.batch(130, closed=closed)
        tables.ack(group, (128, 130))
        tables.dump_batch(batch)
        tables.words.pop(f"{batch.batch_id}/1/0", None)
        if closed:
            expected.add(wrong(batch, "lost_parent", f"{batch.batch_id}/0/2"))
    # a word below a cleared bit is no loss, whatever it is
    batch, group = tables.batch(64**3 * 2)
    tables.ack(group, (0, 64**3))
    tables.dump_batch(batch)
    tables.set_word(batch, 0, 9, 0)

    # all done, not complete; with and without words
    stuck, group = tables.batch(70)
    tables.ack(group, (0, 70))
    tables.dump_batch(stuck)
    tables.set_batch(stuck, state=State.CLOSED, ended_at=None)
    expected.add(wrong(stuck, "stuck"))
    nothing, _ = tables.batch(1, closed=False)
    tables.set_batch(nothing, state=State.CLOSED, closed_at=tables.memory.clock.now(), items=0)
    expected.add(wrong(nothing, "stuck"))
    # complete, and an item is pending
    early, group = tables.batch(70)
    tables.ack(group, (0, 69))
    tables.dump_batch(early)
    tables.set_batch(early, state=State.COMPLETE, ended_at=tables.memory.clock.now())
    expected.add(wrong(early, "early"))

    # words that contradict themselves
    batch, _ = tables.batch(200)
    tables.dump_batch(batch)
    for number, word, others in (
        (0, FULL - 3, {"done": {"NS": ["0"]}}),
        (1, FULL - 3, {"done": {"NS": ["0", "63"]}}),
        (2, FULL - 1, {"failed": {"N": "2"}}),
    ):
        key = tables.set_word(batch, 0, number, word, **others)
        expected.add(wrong(batch, "contradiction", key))
    bare = word_row(f"{batch.batch_id}/0/3", None, batch.expires_at)
    tables.words[f"{batch.batch_id}/0/3"] = {**bare, "done": {"NS": ["3"]}}
    expected.add(wrong(batch, "contradiction", f"{batch.batch_id}/0/3"))
    # a whole word put without its set, and a row that holds only leases, are as they should be
    whole, _ = tables.batch(200)
    tables.dump_batch(whole)
    tables.words[f"{whole.batch_id}/0/1"] = {
        **word_row(f"{whole.batch_id}/0/1", None, whole.expires_at),
        "word": {"N": "0"},
    }
    tables.set_word(whole, 1, 0, FULL - 2)
    tables.words[f"{whole.batch_id}/0/2"] = {
        **word_row(f"{whole.batch_id}/0/2", None, whole.expires_at),
        "l5": {"N": "1790000030"},
    }

    # bits and words that are not of the tree
    batch, _ = tables.batch(100)
    tables.dump_batch(batch)
    expected |= {
        wrong(batch, "no_such_child", tables.set_word(batch, 0, 1, FULL ^ 1 << 63)),
        wrong(batch, "outside", tables.set_word(batch, 0, 2, FULL - 1)),
        wrong(batch, "outside", tables.set_word(batch, 2, 0, FULL - 1)),
        wrong(batch, "outside", tables.set_word(batch, 9, 0, FULL - 1)),
    }
    batch, _ = tables.batch(64)  # above the root, and the root is not done
    tables.dump_batch(batch)
    expected.add(wrong(batch, "outside", tables.set_word(batch, 1, 0, FULL - 1)))
    counting = tables.ledger.open(OpenBatch(mode=Mode.ESTIMATED))
    tables.ledger.add(counting.batch_id, 9)
    tables.dump_batch(counting)
    expected.add(wrong(counting, "outside", tables.set_word(counting, 0, 0, FULL - 1)))

    # keys and values that nobody wrote
    for key in ("", "7", "7/0", "7/0/1/2", "07/0/1", "7/-1/0", "7/0/x", f"{2**53}/0/0", "a/b/c"):
        tables.words[key] = word_row(key, FULL - 1, batch.expires_at)
        expected.add((None, key, "malformed_key", False, True))
    batch, _ = tables.batch(6400)
    tables.dump_batch(batch)
    for number, others in enumerate(
        (
            {"word": {"N": str(2**64)}},
            {"word": {"N": "-1"}},
            {"word": {"N": "1.5"}},
            {"word": {"S": "1"}},
            {"done": {"NS": ["64"]}},
            {"failed": {"N": "-2"}},
            {"expires_at": {"S": "tomorrow"}},
        )
    ):
        expected.add(wrong(batch, "malformed_row", tables.set_word(batch, 0, number, FULL - 1, **others)))

    # rows of batches
    for others in (
        {"state": {"S": "done"}},
        {"items": {"N": "-1"}},
        {"items": {"N": str(2**40 + 1)}},
        {"salt": {"B": b"short"}},
        {"created_at": {"S": "now"}},
        {"closed_at": {"S": "now"}},
        {"mode": {"N": "1"}},
    ):
        batch, group = tables.batch(70)
        tables.ack(group, (0, 1))  # its words are nobody's fault
        tables.dump_batch(batch)
        tables.batches[batch.batch_id] |= others
        expected.add(wrong(batch, "malformed_row"))
    for changes in (
        {"state": State.OPEN},
        {"closed_at": None},
        {"ended_at": 1_790_000_000_000},
        {"partial": True},
        {"state": State.CANCELLED},
    ):
        batch, _ = tables.batch(70)
        tables.set_batch(batch, **changes)
        expected.add(wrong(batch, "contradiction"))
    misfiled, _ = tables.batch(70)
    tables.dump_batch(misfiled)
    tables.batches[misfiled.batch_id]["shelf"] = {"S": f"open#{misfiled.batch_id % 8}"}
    expected.add(wrong(misfiled, "misfiled"))

    # expiry: too early, gone, and forged
    batch, _ = tables.batch(200)
    tables.dump_batch(batch)
    for number, early_by in ((0, 1), (1, 40 * 86_400)):
        key = f"{batch.batch_id}/0/{number}"
        tables.words[key] = word_row(key, FULL - 1, batch.expires_at - early_by)
        expected.add(wrong(batch, "expires_early", key))
    gone, group = tables.batch(200)
    tables.ack(group, (0, 70))
    tables.dump_batch(gone)
    tables.set_batch(gone, expires_at=tables.at // 1000 - 5)
    expected |= {(gone.batch_id, key, "orphan", False, False) for key in tables.words_of(gone)}
    tables.words["4711/0/0"] = word_row("4711/0/0", 5, tables.at // 1000 + 366 * 86_400 - 1)
    expected.add((4711, "4711/0/0", "orphan", False, False))
    tables.words["4711/0/1"] = word_row("4711/0/1", 5, tables.at // 1000 + 366 * 86_400 + 1)
    expected.add((4711, "4711/0/1", "forged", False, True))
    tables.words["4711/0/2"] = word_row("4711/0/2", 5, tables.at // 1000 - 1)

    # what an active batch shows may be on its way; one row's contradiction is not
    busy = {"touched_at": tables.at - 5000}
    moving, group = tables.batch(70)
    tables.ack(group, (0, 70))
    tables.dump_batch(moving)
    tables.set_batch(moving, state=State.CLOSED, ended_at=None, **busy)
    tables.words.pop(f"{moving.batch_id}/1/0")
    expected.add((moving.batch_id, f"{moving.batch_id}/0/1", "lost_parent", True, False))
    growing, _ = tables.batch(70, closed=False)
    tables.set_batch(growing, **busy)
    expected |= {
        (growing.batch_id, tables.set_word(growing, 0, 1, FULL ^ 1 << 60), "no_such_child", True, False),
        (growing.batch_id, tables.set_word(growing, 0, 2, FULL - 1), "outside", True, False),
        wrong(growing, "contradiction", tables.set_word(growing, 0, 0, FULL - 1, done={"NS": ["5"]})),
    }
    closed, _ = tables.batch(70)
    tables.set_batch(closed, **busy)
    expected.add(wrong(closed, "outside", tables.set_word(closed, 0, 2, FULL - 1)))  # its size is final
    ended, group = tables.batch(70)
    tables.set_batch(ended, state=State.COMPLETE, ended_at=tables.at - 10)
    expected.add((ended.batch_id, None, "early", True, False))
    return expected


@pytest.fixture(scope="module")
def case(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """Sound batches and planted findings, audited together, once."""
    tables = Tables()
    sound(tables)
    tables.dump()
    expected = planted(tables)
    found = audit(tables.snapshot(spark, tmp_path_factory.mktemp("exports")))
    found.measured.persist()
    findings = found.findings().persist()
    batches = found.batches(findings).persist()
    verdicts = {row["batch_id"]: row["verdict"] for row in batches.collect()}
    yield Case(tables, expected, batches, found.missing(), findings, verdicts)
    for kept in (batches, findings, found.measured):
        kept.unpersist()


def test_each_finding_is_found_and_none_is_invented(case: Case) -> None:
    # Given sound batches of every state, and batches with one thing wrong each
    # When they are audited
    rows = case.findings.collect()

    # Then exactly what was planted is found, once
    found = [(row["batch_id"], row["word_id"], row["kind"], row["in_flux"], row["wrong"]) for row in rows]
    assert set(found) - case.expected == set()
    assert case.expected - set(found) == set()
    assert len(found) == len(case.expected)


def test_done_and_missing_are_what_the_ledger_says(case: Case) -> None:
    # Given the sound batches
    ledger = case.tables.ledger
    batches = [
        batch for batch in case.tables.memory.batches._rows.values() if batch.batch_id in case.tables.left
    ]
    exact = [batch for batch in batches if batch.mode is Mode.EXACT]
    assert len(exact) > 40

    # When they are audited, then every range is the ledger's, and so is every count
    expected = [
        Row(batch_id=batch.batch_id, start=found.start, stop=found.stop)
        for batch in exact
        for found in ledger.missing(batch.batch_id).ranges
    ]
    ids = [batch.batch_id for batch in exact]
    assertDataFrameEqual(case.missing.where(case.missing["batch_id"].isin(ids)), expected)
    done = {row["batch_id"]: row["done"] for row in case.batches.collect()}
    assert {i: done[i] for i in ids} == {i: ledger.status(i, exact=True).done_min for i in ids}


def test_the_verdict_says_what_is_worst(case: Case) -> None:
    # Given what was planted
    by_kind: dict[str, set[str]] = {}
    for batch_id, _, kind, in_flux, _ in case.expected:
        if batch_id in case.verdicts:
            by_kind.setdefault(f"{kind}, in flux" if in_flux else kind, set()).add(case.verdicts[batch_id])

    # When batches are judged, then each has the verdict of its findings
    assert by_kind["stuck"] == {"stuck"}
    assert by_kind["early"] == {"early"}
    assert by_kind["lost_parent"] == {"wrong"}
    assert by_kind["lost_parent, in flux"] == {"in_flux"}
    assert by_kind["early, in flux"] == {"in_flux"}
    judged = {case.verdicts[batch_id] for batch_id in case.tables.left}
    assert judged == {"sound", "counted"}


def test_age_and_rate_come_from_the_row(case: Case) -> None:
    # Given an open batch of 64 items, all done, created a day before the export
    (row,) = case.batches.where("items = 64 and state = 'open' and done = 64").limit(1).collect()

    # When it is audited, then it is a day old, and its rate is over the time in which it can have been active
    assert row["age"] == DAY / 1000
    assert row["rate"] == pytest.approx(64 / 640)
    assert row["pending"] == 0
